"""Rows of two bigints that Spark's xxhash64 takes for one, though they differ.

With a seed, the hash of one bigint can be inverted: for any other first value there is a second
one that leads to the same hash (xxHash's specification, XXH64).
"""

from __future__ import annotations

_MASK = (1 << 64) - 1
_P1, _P2, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_P3 = 0x165667B19E3779F9
_SEED = 42  # Spark's


def partner(a: int, b: int, other_a: int) -> int:
    """The bigint with which `other_a` has the hash of `(a, b)`."""
    mixed = (_hash(a, _SEED) + _P5 + 8) ^ _lane(b)
    lane = mixed ^ ((_hash(other_a, _SEED) + _P5 + 8) & _MASK)
    value = _rotated(lane * pow(_P1, -1, 1 << 64), 64 - 31) * pow(_P2, -1, 1 << 64) & _MASK
    return value - (1 << 64) if value >> 63 else value


def _hash(value: int, seed: int) -> int:
    found = ((seed + _P5 + 8) & _MASK) ^ _lane(value)
    found = (_rotated(found, 27) * _P1 + _P4) & _MASK
    found = ((found ^ found >> 33) * _P2) & _MASK
    found = ((found ^ found >> 29) * _P3) & _MASK
    return found ^ found >> 32


def _lane(value: int) -> int:
    return _rotated(value * _P2, 31) * _P1 & _MASK


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (64 - bits)) & _MASK
