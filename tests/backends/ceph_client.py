# SPDX-License-Identifier: Apache-2.0
"""Another client of a Ceph cluster, for servers.py: a JSON list a line, a request and its arguments; as many answers.

Run by the system's Python: what it imports are Debian packages, and a virtual environment doesn't see them."""

import json
import sys

import cephfs
import rados


class Client:
    def __init__(self, configuration: str) -> None:
        self.cluster = rados.Rados(conffile=configuration)
        self.cluster.connect()
        self.files = cephfs.LibCephFS(conffile=configuration)

    def command(self, name: str, arguments: dict[str, object]) -> object:
        """Of the monitors."""
        error, answer, complaint = self.cluster.mon_command(
            json.dumps({"prefix": name, "format": "json", **arguments}), b""
        )
        assert error == 0, f"{name}: {complaint}"
        return json.loads(answer or "null")

    def mount(self, root: str) -> None:
        """The whole file system; makes a directory in it."""
        self.files.mount()
        self.files.mkdirs(root, 0o755)

    def entries(self, directory: str) -> list[str]:
        try:
            with self.files.opendir(directory) as stream:
                return sorted(
                    entry.d_name.decode()
                    for entry in iter(lambda: self.files.readdir(stream), None)
                    if entry.d_name not in (b".", b"..")
                )
        except (cephfs.ObjectNotFound, cephfs.NotDirectory):
            return []

    def objects(self, root: str) -> dict[str, int]:
        """Sizes of the files in the directories below."""
        found = {}
        for dataset in self.entries(root):
            for item in self.entries(f"{root}/{dataset}"):
                try:
                    found[f"{dataset}/{item}"] = self.files.stat(f"{root}/{dataset}/{item}").st_size
                except cephfs.ObjectNotFound:  # removed at this moment
                    continue
        return found

    def put(self, file: str, content: str) -> None:
        opened = self.files.open(file, "w", 0o666)
        self.files.write(opened, content.encode(), 0)
        self.files.close(opened)

    def get(self, file: str) -> str:
        opened = self.files.open(file, "r")
        content: str = self.files.read(opened, 0, 1 << 20).decode()
        self.files.close(opened)
        return content

    def remove(self, file: str) -> None:
        self.files.unlink(file)

    def evict(self, name: str) -> None:
        """All sessions of so named clients, dead or alive."""
        _, sessions, _ = self.files.mds_command("*", json.dumps({"prefix": "session ls", "format": "json"}), "")
        for session in json.loads(sessions):
            if session["client_metadata"].get("entity_id") == name:
                self.files.mds_command(
                    "*", json.dumps({"prefix": "session evict", "filters": [f"id={session['id']}"]}), ""
                )

    def limit(self, directory: str, size: int) -> None:
        """Limit a directory to `size` bytes; 0 removes the limit."""
        self.files.setxattr(directory, "ceph.quota.max_bytes", str(size).encode(), 0)


client = Client(sys.argv[1])
for line in sys.stdin:
    request, *arguments = json.loads(line)
    print(json.dumps(getattr(client, request)(*arguments)), flush=True)
