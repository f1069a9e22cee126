"""COPY TO S3: options, plan, encode, upload, commit, manifest."""
