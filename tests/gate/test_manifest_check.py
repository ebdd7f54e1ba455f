from __future__ import annotations

from tests.gate.made_tree import BENCHMARK, change_json, remove, write
from tests.gate.tree_changes import Breach, breaches, breaks, check, in_manifest, manifest, rules_of, server

# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    ("manifest no JSON", "open", lambda h: write(manifest(h), "{"), "MAN-JSON", "reject"),
    ("manifest without files", "open", lambda h: change_json(manifest(h), files=7), "MAN-JSON", "reject"),
    ("manifest of strings", "open", lambda h: change_json(manifest(h), rows=["a"]), "MAN-JSON", "reject"),
    (
        "manifest entry",
        "open",
        lambda h: in_manifest(h, lambda m: m["files"].append({"path": 3})),
        "MAN-JSON",
        "reject",
    ),
    ("edited file", "open", lambda h: write(server(h) / "README.md", "edited\n"), "MAN-HASH", "reject"),
    ("listed file gone", "open", lambda h: remove(h / "src" / BENCHMARK / "main.py"), "MAN-FILE", "reject"),
    (
        "listed file outside",
        "open",
        lambda h: in_manifest(h, lambda m: m["files"].append({"path": "../../../x", "sha256": "0"})),
        "MAN-FILE",
        "reject",
    ),
    ("unlisted file", "open", lambda h: write(h / "src" / "new.py", "x"), "MAN-EXTRA", "review"),
    ("manifest of another round", "open", lambda h: change_json(manifest(h), round="v6.0"), "MAN-ROUND", "reject"),
    ("manifest lacks a row", "open", lambda h: in_manifest(h, lambda m: m["rows"].pop()), "MAN-ROW", "review"),
    (
        "manifest has a row too many",
        "open",
        lambda h: in_manifest(h, lambda m: m["rows"].append({"scenario": "x"})),
        "MAN-ROW",
        "review",
    ),
    (
        "legs of two fingerprints",
        "open",
        lambda h: in_manifest(h, lambda m: m["rows"][0]["legs"][0].update(fingerprint="0")),
        "ROW-FINGERPRINT",
        "reject",
    ),
    (
        "rows of two fingerprints",
        "open",
        lambda h: in_manifest(h, lambda m: m["rows"].append({**m["rows"][0], "fingerprint": "0"})),
        "ROW-FINGERPRINT",
        "reject",
    ),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_a_tree_without_manifest_is_noted(tree):
    home = tree("open")
    remove(manifest(home))
    report = check(home)
    assert rules_of(report) == set()
    assert "MAN-ABSENT" in {f.rule for f in report.findings}
