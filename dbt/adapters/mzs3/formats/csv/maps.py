"""Maps as Materialize writes them, `{a=>1,"b c"=>NULL}`; PostgreSQL has no maps.

(PostgreSQL's hstore, which holds text alone, quotes every key and value.)
"""

from __future__ import annotations

import pyarrow as pa

from dbt.adapters.mzs3.formats.csv.arrays import SPECIAL as SPECIAL_IN_ARRAYS
from dbt.adapters.mzs3.formats.csv.arrays import element_text, in_braces
from dbt.adapters.mzs3.formats.csv.quoting import concatenated
from dbt.adapters.mzs3.formats.csv.scalars import Form

# What makes Materialize put quotes around a key or a value, beside what does in arrays.
SPECIAL = SPECIAL_IN_ARRAYS + "=>"


def map_text(maps: pa.Array, key: Form, value: Form) -> pa.Array:
    """Lists of structs `(key, value)` as `large_string`, the entries in the order they are in.

    Keys and values are quoted as the elements of arrays are, and if they hold `=` or `>`. Arrays
    and maps among them stay as they are: `{a=>{1,2}}`.
    """
    keys, values = maps.flatten().flatten()
    entries = concatenated(
        element_text(keys, key, SPECIAL), "=>", element_text(values, value, SPECIAL)
    )
    return in_braces(maps, entries)
