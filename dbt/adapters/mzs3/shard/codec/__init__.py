"""The codec: each row as one protobuf message, as docs/persist-shard/row.proto has it."""
