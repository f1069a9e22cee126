"""The structured encoding: Arrow arrays that other readers of Parquet understand."""
