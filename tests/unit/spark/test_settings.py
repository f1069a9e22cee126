import pytest

from dbt.adapters.mzs3.spark.settings import make_warehouse, place_warehouse

URL = "spark.hadoop.javax.jdo.option.ConnectionURL"
WAREHOUSE = "spark.sql.warehouse.dir"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"


@pytest.fixture(autouse=True)
def no_spark_configuration(monkeypatch):
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)


def test_without_a_word_in_the_profile_all_is_in_one_folder_of_the_project(tmp_path):
    placed = place_warehouse({}, tmp_path)

    assert placed[WAREHOUSE] == f"{tmp_path}/.spark/warehouse"
    assert placed[URL] == f"jdbc:derby:;databaseName={tmp_path}/.spark/metastore_db;create=true"
    assert placed[JAVA_OPTIONS] == f'"-Dderby.stream.error.file={tmp_path}/.spark/derby.log"'


@pytest.mark.parametrize("given", ["data/warehouse", "./data/warehouse"])
def test_a_relative_warehouse_is_below_the_project_with_the_metastore_beside_it(tmp_path, given):
    placed = place_warehouse({WAREHOUSE: given}, tmp_path)

    assert placed[WAREHOUSE] == f"{tmp_path}/data/warehouse"
    assert f"databaseName={tmp_path}/data/metastore_db;" in placed[URL]


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_local_path_may_have_the_file_scheme(tmp_path, scheme):
    placed = place_warehouse({WAREHOUSE: f"{scheme}/data/warehouse"}, tmp_path)

    assert placed[WAREHOUSE] == "/data/warehouse"
    assert "databaseName=/data/metastore_db;" in placed[URL]


def test_options_for_java_are_kept(tmp_path):
    placed = place_warehouse({JAVA_OPTIONS: "-Xss4m"}, tmp_path)

    assert placed[JAVA_OPTIONS].startswith('-Xss4m "-Dderby.stream.error.file=')


def test_the_metastore_of_another_catalog_is_not_the_sessions(tmp_path):
    other = {"spark.sql.catalog.other.hive.metastore.uris": "thrift://metastore:9083"}
    assert URL in place_warehouse(other, tmp_path)


@pytest.mark.parametrize(
    "metastore",
    [
        {"spark.hadoop.hive.metastore.uris": "thrift://metastore:9083"},
        {URL: "jdbc:postgresql://metastore/db"},
        {"spark.sql.catalogImplementation": "in-memory"},
        {WAREHOUSE: "hdfs://cluster/warehouse"},
    ],
)
def test_a_metastore_of_the_users_own_is_left_alone(tmp_path, metastore):
    placed = place_warehouse(metastore, tmp_path)

    assert placed.get(URL) == metastore.get(URL)
    assert JAVA_OPTIONS not in placed


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("hive-site.xml", "<configuration/>"),
        ("spark-defaults.conf", "spark.sql.warehouse.dir /data\n"),
    ],
)
def test_sparks_own_configuration_decides_where_there_is_one(tmp_path, monkeypatch, file, text):
    (tmp_path / file).write_text(text)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    assert place_warehouse({}, tmp_path) == {}


def test_a_spark_configuration_about_other_things_changes_nothing(tmp_path, monkeypatch):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.executor.memory 4g\n")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))

    assert WAREHOUSE in place_warehouse({}, tmp_path)


def test_the_default_folder_is_made_and_never_committed(tmp_path):
    make_warehouse(place_warehouse({}, tmp_path))

    assert (tmp_path / ".spark" / "warehouse").is_dir()
    assert (tmp_path / ".spark" / ".gitignore").read_text() == "*\n"


def test_a_folder_that_the_profile_names_gets_no_gitignore(tmp_path):
    make_warehouse(place_warehouse({WAREHOUSE: "data/warehouse"}, tmp_path))

    assert [path.name for path in (tmp_path / "data").iterdir()] == ["warehouse"]
