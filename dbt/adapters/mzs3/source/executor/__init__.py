"""The part of S3 CSV sources that runs on executors: standard library, pyarrow and boto3 only."""
