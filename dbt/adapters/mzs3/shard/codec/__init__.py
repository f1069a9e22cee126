"""The codec: each row as one protobuf message, defined in docs/persist-shard/row.proto."""
