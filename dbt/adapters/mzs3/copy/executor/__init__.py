"""The part of COPY TO S3 that runs on executors: standard library, pyarrow and boto3 only."""
