"""The command line clients, the dump tools and sysbench.

    python programs.py NAME PROGRAM DESCRIPTION.json

NAME is cli, dump or sysbench; PROGRAM the program's path. One JSON line a check goes to standard output.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile


class Program:
    def __init__(self, path, d):
        self.path, self.d = path, d
        self.help = subprocess.run([path, "--no-defaults", "--help"], capture_output=True, text=True).stdout
        self.oracle = "get-server-public-key" in self.help

    def options(self, options):
        d = self.d
        found = ["--no-defaults", "-h", d["host"], "-P", str(d["port"]), "--protocol=tcp"]
        found += ["-u", options.get("user", d["user"]), f"-p{options.get('password', d['password'])}"]
        found += ["--default-character-set=utf8mb4"]
        if options.get("compress"):
            found += ["--compress"]
        if options.get("tls"):
            found += [f"--ssl-ca={d['ca']}", "--ssl-mode=VERIFY_CA" if self.oracle else "--ssl"]
        elif self.oracle:
            found += ["--ssl-mode=DISABLED", "--get-server-public-key"]
        else:
            found += ["--skip-ssl"]
        return found

    def run(self, *words, options=None, text="", program=None):
        argv = [program or self.path, *self.options(options or {}), *words]
        done = subprocess.run(argv, input=text.encode(), capture_output=True, timeout=100)
        errors = [
            re.sub(r"^\S*(mysql|mariadb)\S*: ", "", line)
            for line in done.stderr.decode().splitlines()
            if not re.search("deprecated|on the command line|Forcing protocol", line, re.I)
        ]
        return {"out": done.stdout.decode("utf-8", "replace"), "said": errors, "status": done.returncode}


def report(check, steps):
    print(json.dumps({"check": check, "steps": steps}), flush=True)


def cli(program, d):
    """Every check's steps as one script at the prompt; parameters are not its kind."""
    for check in d["checks"]:
        if check["name"] in ("reconnect", "objects"):
            continue
        steps, options, script = [], {}, []

        def flush(steps=steps, script=script):
            if script:
                words = ["-f", "-t", options.get("database", d["database"])]
                words += ["--column-type-info"] if "types" in check["name"] else []
                steps.append(program.run(*words, options=options, text="\n".join(script) + "\n"))
                script.clear()

        for step in check["steps"]:
            if "connect" in step:
                flush()
                options = step["connect"]
                script.append("SELECT 'connected';")
            elif "text" in step and "save" not in step:
                script.append(step["text"] + ";")
            elif "multi" in step:
                script.append(f"delimiter //\n{step['multi']}//\ndelimiter ;")
            else:
                for name, sql in (("begin", "BEGIN;"), ("commit", "COMMIT;"), ("rollback", "ROLLBACK;")):
                    if name in step:
                        script.append(sql)
        flush()
        report(check["name"], steps)
    report("status", program.run(d["database"], text="status;\n")["status"])
    statement = "PREPARE s FROM 'SELECT ? + 1, ?'; SET @a = 4, @b = '🐘'; EXECUTE s USING @a, @b; DEALLOCATE PREPARE s;"
    report("PREPARE in SQL", program.run(d["database"], text=statement))


def dump(program, d):
    """Dump, restore into a database of its own, compare."""
    client = Program(d["client"], d)
    for name in ("legacy", "demo"):
        for way in ("--single-transaction", "--lock-tables"):
            made = program.run("--skip-dump-date", "--skip-comments", way, name)
            text = made.pop("out")
            rows = len(re.findall(r"^INSERT INTO", text, re.M))
            tables = re.findall(r"^CREATE TABLE `(\w+)`", text, re.M)
            steps = [made, rows > 0, tables]
            if name == "legacy":
                client.run("-e", "DROP DATABASE IF EXISTS drivers_restored; CREATE DATABASE drivers_restored")
                steps.append(client.run("drivers_restored", text=text))
                for database in ("legacy", "drivers_restored"):
                    columns = "n, c_big_u, c_decimal, c_varchar, HEX(c_mediumblob), c_datetime, c_json"
                    sql = f"SELECT MD5(GROUP_CONCAT(CONCAT_WS(',', {columns}) ORDER BY n)) FROM drivers_types"
                    steps.append(client.run("-N", "-B", "-e", sql, database))
                client.run("-e", "DROP DATABASE drivers_restored")
            report(f"dump of {name} with {way}", steps)


def sysbench(program, d):
    """Its own read-write test, with and without prepared statements."""
    common = [program.path, "oltp_read_write", f"--mysql-host={d['host']}", f"--mysql-port={d['port']}"]
    common += [
        f"--mysql-user={d['user']}",
        f"--mysql-password={d['password']}",
        f"--mysql-db={d['database']}",
    ]
    common += [
        "--tables=1",
        "--table-size=500",
        "--threads=4",
        "--events=200",
        "--time=30",
        "--db-driver=mysql",
    ]
    for mode in ("auto", "disable"):
        steps = []
        for what in ("prepare", "run", "cleanup"):
            done = subprocess.run(
                [*common, f"--db-ps-mode={mode}", what], capture_output=True, text=True, timeout=90
            )
            steps.append([done.returncode, re.findall(r"FATAL.*", done.stdout + done.stderr)])
            if what == "run":
                steps.append(re.findall(r"transactions: +(\d+)", done.stdout))
        report(f"--db-ps-mode={mode}", steps)


if __name__ == "__main__":
    name, path, description = sys.argv[1:4]
    with open(description, encoding="utf-8") as file:
        d = json.load(file)
    os.chdir(tempfile.gettempdir())
    {"cli": cli, "dump": dump, "sysbench": sysbench}[name](
        Program(path, d) if name != "sysbench" else type("Only", (), {"path": path}), d
    )
