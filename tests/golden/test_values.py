"""Every type's text is what PostgreSQL writes, on generated values."""

from random import Random

import pytest
from support.golden import postgres as g
from support.golden import values as v
from support.golden.scalars import SCALARS, check

pytestmark = pytest.mark.postgres


@pytest.mark.parametrize("name", SCALARS)
def test_scalar_is_written_as_postgres_writes_it(postgres, name):
    kind, make, extremes = SCALARS[name]
    check(postgres, kind, v.sample(Random(name), make, extremes))


@pytest.mark.parametrize("name", SCALARS)
def test_array_is_written_as_postgres_writes_it(postgres, name):
    kind, make, extremes = SCALARS[name]
    values = v.sample(Random(name), v.array(make), [[], extremes, [None], [None, *extremes]])
    check(postgres, g.array_of(kind), values)


@pytest.mark.parametrize("name", ["integer", "text", "double", "timestamptz"])
def test_nested_array_is_written_as_postgres_writes_it(postgres, name):
    kind, make, extremes = SCALARS[name]
    values = v.sample(Random(name), v.matrix(make), [[], [extremes, extremes], [[None]]])
    check(postgres, g.nested_array_of(kind), values)
