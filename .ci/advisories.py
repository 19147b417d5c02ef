"""Writes .ci/advisories.jsonl from a clone of RustSec's advisory-db, named on the command line.

One line for each advisory that stands: its id, the crate, the versions that are not affected, and
what kind it is where it is no vulnerability.
"""

import json
import pathlib
import sys
import tomllib

folder = pathlib.Path(sys.argv[1])
lines, newest = [], ""
for path in sorted(folder.glob("crates/*/RUSTSEC-*.md")):
    about = tomllib.loads(path.read_text().split("```toml\n")[1].split("```")[0])
    advisory, versions = about["advisory"], about.get("versions", {})
    if "withdrawn" in advisory:
        continue
    line = {
        "id": advisory["id"],
        "crate": advisory["package"],
        "safe": versions.get("patched", []) + versions.get("unaffected", []),
    }
    if "informational" in advisory:
        line["kind"] = advisory["informational"]
    lines.append(json.dumps(line))
    newest = max(newest, advisory["date"])
target = pathlib.Path(__file__).with_name("advisories.jsonl")
target.write_text(json.dumps({"newest": newest}) + "\n" + "\n".join(lines) + "\n")
print(f"{len(lines)} advisories, the newest of {newest}")
