"""A query as files in S3: options, commit, manifest, history."""
