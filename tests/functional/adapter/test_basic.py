"""dbt's own acceptance tests: the basics.

Left out: `BaseSimpleCopyUppercase` brings a PostgreSQL profile of its own, and
`EmptyModelsArentRunBase` reads `information_schema`, which Spark does not have.
"""

from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.adapter.simple_copy.test_simple_copy import SimpleCopyBase


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestGenericTests(BaseGenericTests):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass


class TestSimpleCopy(SimpleCopyBase):
    # Spark has no materialized views outside of pipelines.
    test_simple_copy_with_materialized_views = None
