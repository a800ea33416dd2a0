"""Does a test fail when a rule is wrong? ``python -m tests.mutants [NUMBER] [SEED]``

Plants a fault into a pure file, runs that file's tests on a copy of the tree, and says which faults
no test has noticed. A survivor is a missing test, or a fault that changes nothing.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mutants.changes import Change, changes

ROOT = Path(__file__).parents[2]
SUBJECTS = {
    "core/lanes": "tests/lanes",
    "core/waiting.py": "tests/lanes",
    "core/job_rules.py": "tests/jobs/test_rules.py",
    "core/job_asking.py": "tests/jobs/test_asking.py",
    "core/watch_rules.py": "tests/watches/test_rules.py",
    "core/watch_asking.py": "tests/watches/test_asking.py",
    "channels/markup": "tests/markup",
    "gateway/web/signin_rules.py": "tests/web/test_signin_rules.py",
    "gateway/web/peer.py": "tests/web/test_peer.py",
    "gateway/web/mailbox.py": "tests/web/test_peer.py",
}
SECONDS = 180  # a fault that makes a test hang is noticed, too


def main(number: int, seed: int) -> int:
    found = [
        (file, change, tests)
        for subject, tests in SUBJECTS.items()
        for file in sorted(
            (ROOT / subject).rglob("*.py") if subject[-3:] != ".py" else [ROOT / subject]
        )
        for change in changes(file.read_text())
    ]
    chosen = random.Random(seed).sample(found, min(number, len(found)))
    survived = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in ("core", "channels", "gateway", "tests"):
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", tree)
        for tests in sorted({tests for _, _, tests in chosen}):
            if not _passes(tree, tests):
                sys.exit(f"{tests} must pass before faults are planted")
        for file, change, tests in chosen:
            where = f"{file.relative_to(ROOT)}:{change.line}"
            noticed = _noticed(tree / file.relative_to(ROOT), change, tree, tests)
            survived += not noticed
            print("noticed " if noticed else "SURVIVED", where, change.what, flush=True)
    print(f"{len(chosen) - survived} noticed, {survived} survived of {len(found)} possible faults")
    return 1 if survived else 0


def _noticed(file: Path, change: Change, tree: Path, tests: str) -> bool:
    source = file.read_text()
    file.write_text(change.applied(source))
    try:
        return not _passes(tree, tests)
    finally:
        file.write_text(source)


def _passes(tree: Path, tests: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests]
    try:
        done = subprocess.run(command, cwd=tree, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:3]]
    sys.exit(main(*(words + [40, 1][len(words) :])))
