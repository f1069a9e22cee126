"""Objects that S3 announces on an SQS queue."""
