"""What `record_results.py` asks each server: the tool, its arguments, and whether the answer is recorded."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Call = tuple[str, dict[str, Any], bool]
BIG = "SELECT name, version, licence, requires_python, author FROM packages"
SIZES = "SELECT package, count(*) AS files, sum(size) AS bytes FROM {} GROUP BY package ORDER BY bytes DESC LIMIT 60"
FILES = "SELECT package, path, size FROM {} WHERE size > 40000 ORDER BY size DESC LIMIT {}"
QUERY = "(function_definition name: (identifier) @name)"
LINKS = "() => [...document.links].map(a => ({text: a.innerText, href: a.href, host: a.host, target: a.target}))"
CODE = "src/pegboard/retrieval/fusion.py"
PAGES = 4


def calls_of(server: str, data: Path, site: str, pages: list[str]) -> Iterator[Call]:
    """The calls of a server, in order."""
    for tool, arguments, *kept in _calls(server, data, site, pages):
        yield tool, arguments, not kept


def _calls(server: str, data: Path, site: str, pages: list[str]) -> list[tuple[Any, ...]]:
    repository = str(data / "repository")
    here = {"repo_path": repository}
    urls = [f"{site}/{page}" for page in pages]
    match server:
        case "sqlite":
            return [
                ("list_tables", {}),
                ("describe_table", {"table_name": "packages"}),
                *(
                    ("read_query", {"query": query})
                    for query in (BIG, SIZES.format("files"), FILES.format("files", 80))
                ),
            ]
        case "alchemy":
            return [
                ("all_table_names", {}),
                ("filter_table_names", {"q": "e"}),
                ("schema_definitions", {"table_names": ["packages", "requires", "files"]}),
                ("execute_query", {"query": f"{BIG} LIMIT 20"}),
                ("execute_query", {"query": SIZES.format("files")}),
            ]
        case "duckdb":
            files = f"read_csv_auto('{data}/files.csv')"
            return [
                ("query", {"query": SIZES.format(files)}),
                ("query", {"query": FILES.format(files, 120)}),
                ("query", {"query": f"SELECT * FROM read_csv_auto('{data}/requires.csv') LIMIT 150"}),  # noqa: S608
            ]
        case "postgres":
            return [
                ("query", {"sql": BIG.replace("packages", "recorded.packages")}),
                ("query", {"sql": SIZES.format("recorded.files")}),
                ("query", {"sql": FILES.format("recorded.files", 400)}),
                ("query", {"sql": "SELECT * FROM recorded.files LIMIT 4000"}),
                ("query", {"sql": "SELECT table_name, column_name, data_type, is_nullable, column_default, "
                                  "ordinal_position FROM information_schema.columns LIMIT 120"}),
            ]  # fmt: skip
        case "redis":
            return [
                ("hgetall", {"name": "package:numpy"}),
                ("scan_keys", {"pattern": "package:*", "count": 60}),
                ("scan_all_keys", {"pattern": "package:*"}),
                ("smembers", {"name": "licences"}),
                ("lrange", {"name": "queue", "start": 0, "stop": 60}),
                ("zrange", {"key": "sizes", "start": 0, "end": 80, "with_scores": True}),
                ("xrange", {"key": "releases", "count": 60}),
                ("info", {"section": "default"}),
                ("client_list", {}),
                ("type", {"key": "sizes"}),
            ]
        case "code":
            return [
                ("set_project_path", {"path": repository}),
                ("build_deep_index", {}),
                ("find_files", {"pattern": "*.py"}),
                ("search_code_advanced", {"pattern": "def call", "max_results": 60, "context_lines": 1}),
                ("get_file_summary", {"file_path": CODE}),
                ("get_symbol_body", {"file_path": CODE, "symbol_name": "Fusion"}),
                ("get_settings_info", {}),
                ("get_file_watcher_status", {}),
            ]
        case "markitdown":
            return [("convert_to_markdown", {"uri": f"file://{data}/site/{page}"}) for page in pages[:PAGES]]
        case "excel":
            return _of_a_workbook(data)
        case "tree":
            project = {"project": "pegboard"}
            file = {"project": "pegboard", "file_path": CODE}
            return [
                ("register_project_tool", {"path": repository, "name": "pegboard"}),
                ("list_projects_tool", {}),
                ("list_languages", {}),
                ("list_files", project | {"pattern": "src/**/*.py"}),
                ("get_file_metadata", project | {"path": CODE}),
                ("get_ast", project | {"path": CODE, "max_depth": 4}),
                ("find_text", project | {"pattern": "BpeCounter", "max_results": 60}),
                ("get_symbols", file),
                ("get_dependencies", file),
                ("analyze_complexity", file),
                ("analyze_project", project),
                ("get_node_types", {"language": "python"}),
                ("list_query_templates_tool", {"language": "python"}),
                ("run_query", project | {"query": QUERY, "language": "python", "max_results": 80}),
            ]  # fmt: skip
        case "git":
            return [
                ("git_log", here | {"max_count": 40}),
                ("git_show", here | {"revision": "HEAD~3"}),
                ("git_diff", here | {"target": "HEAD~2"}),
                ("git_status", here),
                ("git_branch", here | {"branch_type": "all"}),
            ]
        case "gitjs":
            return [
                ("git_set_working_dir", {"path": repository}),
                ("git_log", {"maxCount": 60}),
                ("git_show", {"object": "HEAD~3", "stat": True}),
                ("git_blame", {"filePath": CODE}),
                ("git_diff", {"target": "HEAD~2"}),
                ("git_status", {}),
                ("git_branch", {"mode": "list"}),
                ("git_reflog", {"maxCount": 40}),
                ("git_remote", {"mode": "list"}),
                ("git_tag", {"mode": "list"}),
            ]
        case "gitlab":
            project = {"project_id": "42"}
            return [
                ("list_issues", project | {"per_page": 30}),
                ("list_issues", project | {"per_page": 100}),
                ("get_issue", project | {"issue_iid": "7"}),
                ("list_commits", project | {"per_page": 60}),
            ]
        case "filesystem":
            return [
                ("list_directory", {"path": f"{repository}/docs"}),
                ("list_directory_with_sizes", {"path": f"{repository}/docs"}),
                ("directory_tree", {"path": f"{repository}/src/pegboard/gateways"}),
                ("directory_tree", {"path": f"{repository}/src"}),
                ("search_files", {"path": repository, "pattern": "**/*.toml"}),
                ("search_files", {"path": repository, "pattern": "**/*.py"}),
                ("get_file_info", {"path": f"{repository}/README.md"}),
                ("read_text_file", {"path": f"{repository}/{CODE}"}),
                ("read_multiple_files", {"paths": [f"{repository}/README.md", f"{repository}/{CODE}"]}),
            ]
        case "memory":
            return [*_of_a_graph(data), ("search_nodes", {"query": "parser"}), ("read_graph", {}),
                    ("open_nodes", {"names": ["numpy", "pydantic", "anyio"]})]  # fmt: skip
        case "ripgrep":
            return [
                ("search", {"pattern": "TokenCounter", "path": repository, "maxResults": 100}),
                ("advanced-search", {"pattern": "class .*Error", "path": repository, "fileType": "py", "context": 1}),
                ("count-matches", {"pattern": "import", "path": f"{repository}/src"}),
                ("list-files", {"path": f"{repository}/tests"}),
                ("list-file-types", {}),
            ]
        case "fetch":
            raw = [("fetch", {"url": url, "raw": True, "max_length": 300_000}) for url in urls[:PAGES]]
            return [*raw, *(("fetch", {"url": url, "max_length": 40_000}) for url in urls[:PAGES])]
        case "playwright":
            return [
                *(("browser_navigate", {"url": url}) for url in urls[:2]),
                ("browser_snapshot", {}),
                ("browser_evaluate", {"function": LINKS}),
                ("browser_network_requests", {"static": True}),
                ("browser_tabs", {"action": "list"}),
                ("browser_find", {"text": "target"}),
                ("browser_console_messages", {"level": "info"}),
            ]  # fmt: skip
        case "time":
            return [("get_current_time", {"timezone": "Europe/Paris"})]
        case "everything":
            return [
                ("get-structured-content", {"location": "New York"}),
                ("get-resource-links", {"count": 10}),
                ("get-annotated-message", {"messageType": "debug"}),
                ("get-tiny-image", {}),
            ]
    return []


def _of_a_workbook(data: Path) -> list[tuple[Any, ...]]:
    book = {"path": f"{data}/meta.xlsx"}
    sheet = book | {"sheet": "packages"}
    return [
        ("create_workbook", book | {"sheets": ["packages", "files"], "overwrite": True}, "setup"),
        ("import_csv", sheet | {"csv_path": f"{data}/packages.csv"}, "setup"),
        ("import_csv", book | {"sheet": "files", "csv_path": f"{data}/files.csv"}, "setup"),
        ("describe_workbook", book),
        ("describe_sheet", sheet),
        ("read_range", sheet | {"range": "A1:F60"}),
        ("read_range", book | {"sheet": "files", "range": "A1:C400"}),
        ("find_cells", book | {"query": "MIT", "max_results": 60}),
        ("list_workbooks", {"directory": str(data)}),
    ]


def _of_a_graph(data: Path) -> list[tuple[Any, ...]]:
    """Packages and what they need, as entities and relations."""
    with (data / "packages.csv").open() as file:
        packages = list(csv.DictReader(file))
    with (data / "requires.csv").open() as file:
        needs = [row for row in csv.DictReader(file) if "extra ==" not in row["requirement"]]
    entities = [
        {"name": row["name"], "entityType": "package", "observations": [f"version {row['version']}", row["summary"]]}
        for row in packages
    ]
    relations = [
        {"from": row["package"], "to": re.split(r"[^\w.-]", row["requirement"])[0], "relationType": "needs"}
        for row in needs
    ]
    return [
        ("create_entities", {"entities": entities}),
        ("create_relations", {"relations": relations}),
    ]
