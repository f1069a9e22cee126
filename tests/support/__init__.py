"""What tests of several rooms share: stand-ins for S3, models, values and processes."""
