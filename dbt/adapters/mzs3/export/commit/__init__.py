"""Makes an export visible at once: completes its uploads and writes its manifest."""
