"""The part of sources that runs on executors: standard library, pyarrow and boto3 only."""
