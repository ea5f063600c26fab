#!/usr/bin/env python3
"""Holds `candela conform` to what its files promise, on a backend that passes.

usage: check_report.py CANDELA PLUGIN

The same run twice, in shards, and killed in the middle gives the same report, times apart; the page is well-formed and
asks for nothing outside; what is listed as unsupported and passes fails, and the line that reruns it finds it; a
certificate says what it is of and is refused after an edit; files that cannot be written are refused before a case runs.
Exit status: 0 held, 1 not.
"""
import json
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

CANDELA, PLUGIN = sys.argv[1:]
ROW = "primitives:binary/add_f32"


def conform(*arguments, status=0):
    command = [CANDELA, "conform", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == status, f"{shlex.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def timeless(value):
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if not key.endswith("_ms")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def report_of(file):
    """The report without its times, as text: the order counts too."""
    return json.dumps(timeless(json.loads(file.read_text())), indent=1)


def check_same(folder):
    base = ["--backend", PLUGIN, "--tier", "primitives"]
    conform(*base, "--jobs", 1, "--json", folder / "one.json", "--html", folder / "one.html", "--junit", folder / "one.xml")
    text = conform(*base, "--jobs", 3, "--json", folder / "two.json")
    assert re.search(r"^unsupported  \d+ f16 is outside every claimed profile; .* other reasons", text, re.MULTILINE), text
    one = report_of(folder / "one.json")
    assert one == report_of(folder / "two.json"), "the same run gives other bytes"
    assert json.loads(one)["total"] > 50
    listed = conform(*base, "--list", "--json", folder / "list.json").split()
    assert listed == [case["case"] for case in json.loads(one)["cases"]], "--list prints other cases"
    record = json.loads((folder / "list.json").read_text())
    assert record["cases"] == listed and record["total"] == len(listed) and record["size"] == "full"
    assert json.loads(conform(*base, "--list", "--json", "-")) | {"command": ""} == record | {"command": ""}
    assert "--list runs no case" in conform(*base, "--list", "--html", folder / "list.html", status=2)

    shards = [folder / f"shard{k}.json" for k in (1, 2, 3)]
    for k, shard in enumerate(shards, 1):
        conform(*base, "--shard", f"{k}/3", "--json", shard)
    conform("--merge", *reversed(shards), "--json", folder / "merged.json")
    assert report_of(folder / "merged.json") == one, "shards do not make the run"
    assert "shard 2/3 is missing" in conform("--merge", shards[0], shards[2], status=2)


def check_page(folder):
    text = (folder / "one.html").read_text()
    page = xml.etree.ElementTree.fromstring(text)
    tags = {element.tag for element in page.iter()}
    assert "script" not in tags and {"details", "summary", "table"} <= tags, tags
    asks = [key for element in page.iter() for key in element.attrib if key in ("src", "href", "srcset")]
    assert not asks and "url(" not in text and "@import" not in text, "the page asks for something outside"
    visible = " ".join("".join(page.itertext()).split())
    report = json.loads((folder / "one.json").read_text())
    assert f"{report['passed']:,}of {report['total']:,} cases passed" in visible, visible[:400]
    assert report["corpus_hash"] in visible and report["plugin"]["sha256"] in visible
    suites = xml.etree.ElementTree.parse(folder / "one.xml").getroot()
    assert sum(int(suite.get("tests")) for suite in suites) == report["total"] == len(suites.findall(".//testcase"))


def check_resume(folder):
    """Killed while the journal grows: what stands in it is kept, and not run again."""
    base = ["--backend", PLUGIN, "--cases", "onnx:test_[a-e]*", "--jobs", "1"]
    journal = folder / "journal"
    run = subprocess.Popen([CANDELA, "conform", *base, "--resume", journal], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    while not journal.exists() or journal.read_bytes().count(b"\n") < 60:
        assert run.poll() is None, f"the run ended with {run.returncode} before it could be killed"
    run.send_signal(signal.SIGKILL)
    run.wait()
    kept = journal.read_bytes()
    kept = kept[:kept.rindex(b"\n") + 1]
    with journal.open("ab") as file:
        file.write(b"0123456789abcdef {torn")
    assert "another run: its seed" in conform(*base, "--resume", journal, "--seed", 2, status=2)
    conform(*base, "--resume", journal, "--json", folder / "resumed.json")
    conform(*base, "--json", folder / "whole.json")
    assert report_of(folder / "resumed.json") == report_of(folder / "whole.json")
    after = journal.read_bytes()
    total = json.loads((folder / "whole.json").read_text())["total"]
    assert after.startswith(kept), "what was done is done again"
    assert 60 <= kept.count(b"\n") < total and after.count(b"\n") == total + 1, (kept.count(b"\n"), total)


def check_expectations(folder):
    listed = folder / "list.toml"
    listed.write_text(f'[[unsupported]]\ncases = "{ROW}:*"\nreason = "not on this chip"\n')
    base = ["--backend", PLUGIN, "--tier", "primitives", "--expectations", listed]
    text = conform(*base, "--json", folder / "listed.json", status=1)
    report = json.loads((folder / "listed.json").read_text())
    failed = [record["case"] for record in report["failed"]]
    assert failed and all(case.startswith(ROW + ":") for case in failed), failed
    assert not report["conformant"] and report["waivers"][0]["count"] == len(failed)
    counts = [report["passed"]] + [len(report[kind]) for kind in ("failed", "unsupported", "emulated", "xfail", "mistrusted")]
    assert sum(counts) == report["total"] == sum(tier["total"] for tier in report["by_tier"].values())
    rerun = re.search(r"^  rerun (candela conform .*)$", text, re.MULTILINE)[1]
    words = shlex.split(rerun)
    assert set(words) & {failed[0]} or words[-1] in failed, rerun
    conform(*words[2:])  # without the list the case passes, alone
    listed.write_text('[[unsupported]]\ncases = "primitives:no_such/*"\nreason = "none"\n')
    assert "the suite has no such case" in conform(*base, status=1)


def check_certificate(folder):
    certificate = folder / "acme.cert"
    base = ["--backend", PLUGIN, "--size", "quick"]
    for part in (["--shard", "1/2"], ["--tier", "primitives"], ["--cases", "primitives:copy/*"]):
        assert "of a whole run only" in conform(*base, *part, "--certificate", certificate, status=2)
    scope = re.compile(r"  of      .*; suite [\d.]+, size quick, seed 1, tiers abi, .*\n  result  0 of \d+ cases failed, \d+ "
                       r"passed.*\n  unsigned: ")
    assert scope.search(conform(*base, "--certificate", certificate))
    for backend in (PLUGIN, "template"):  # the plugin by its name, too
        text = conform("--verify", certificate, "--backend", backend, "--json", folder / "verified.json")
        assert scope.search(text) and f"its report and {PLUGIN} fit" in text, text
    verified = json.loads((folder / "verified.json").read_text())
    assert verified["valid"] and verified["signed"] is False and "size quick" in verified["scope"]["of"]
    assert "has no file" in conform("--verify", certificate, "--backend", "soft", status=2)
    certificate.write_text(re.sub(r'("passed": )(\d+)', lambda m: m[1] + str(int(m[2]) + 1), certificate.read_text(), 1))
    assert "REFUSED  passed: " in conform("--verify", certificate, status=1)
    conform("--verify", folder / "one.json", status=2)


def check_files(folder):
    """Refused before the first case; what fails later does not take the others with it."""
    base = ["--backend", PLUGIN, "--cases", "primitives:copy/*", "--size", "quick"]
    for option in ("--json", "--junit", "--html"):
        for file, why in ((folder / "none" / "file", "there is no folder"), (folder, "is a folder"),
                          (folder / ("n" * 250), "File name too long")):
            text = conform(*base, option, file, status=2)
            assert f"{option} {file}: cannot be written: {why}" in text and "cases" not in text, text
    text = conform(*base, "--junit", folder / "same", "--html", folder / "." / "same", status=2)
    assert "--html" in text and "--junit writes there too" in text, text
    conform(*base, "--junit", "/dev/null", "--html", "/dev/null")
    text = conform(*base, "--json", "/dev/full", "--html", folder / "after.html", status=1)
    assert "/dev/full: cannot write: No space left" in text and (folder / "after.html").stat().st_size > 1000
    assert "quick is a size: --size quick" in conform("--backend", PLUGIN, "--tier", "quick", status=2)
    torn = folder / "torn.json"
    torn.write_text((folder / "one.json").read_text()[:1000])
    text = conform("--merge", torn, status=2)
    assert f"{torn}: is no JSON from line " in text and "exception" not in text, text


def check_examples(_):
    """Whatever the help and the pages tell people to type selects a case."""
    root = pathlib.Path(__file__).resolve().parents[2]
    folders = ("core", "conformance", "docs", "tools", "backends", "examples", "tests")
    pages = [page.read_text() for page in (*root.glob("*.md"), *(p for f in folders for p in (root / f).rglob("*.md")))]
    texts = [conform("--help"), (root / "conformance/report/query.h").read_text(), *pages]
    queries = {a or b for text in texts for a, b in re.findall(r"candela conform (?!.*--onnx-data)[^`\n]*--cases (?:'([^']+)'|(\w+:[\w:/*.;=,]+))", text)}
    queries |= set(re.findall(r'"((?:%s):[^"]*;\*)"' % "|".join(("primitives", "ops", "models")), texts[1]))
    assert queries, "there are no examples"
    for query in queries:
        assert conform("--list", "--cases", query), query


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for check in (check_same, check_page, check_resume, check_expectations, check_certificate, check_files,
                      check_examples):
            try:
                check(folder)
            except AssertionError as error:
                print(f"{check.__name__}: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
