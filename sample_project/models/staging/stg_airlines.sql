select carrier, name as airline
from {{ source('lake', 'airlines') }}
