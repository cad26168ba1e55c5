"""Locks of a holdfast server. Copy this file; it needs Python 3.9 and nothing else.

    import holdfast

    client = holdfast.Client("http://127.0.0.1:7420 http://127.0.0.1:7421")

    with client.lock("orders/42", ttl=30, wait=60) as lease:
        for order in orders:
            lease.check()                      # raises Lost once the lease is lost
            book(order, token=lease.token)     # and the resource refuses a late holder

What is guaranteed, and the rules that this file keeps, are in docs/clients.md.
"""

import http.client
import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request


class Error(Exception):
    """Whatever goes wrong here."""


class Unavailable(Error):
    """No server has answered in time, so what was asked for may have been done or not."""


class Problem(Error):
    """A server has refused. `code` is for programs, the text for people."""

    def __init__(self, status, body):
        super().__init__(body.get("detail") or f"status {status}")
        self.status, self.code, self.body = status, body.get("code", ""), body


class Held(Problem):
    """Somebody else has the lock; body["holders"] says who."""


class InProgress(Held):
    """Somebody else is doing the do-once work."""


class Lost(Problem):
    """We had the lease and no longer do."""


_KINDS = {"lock-held": Held, "in-progress": InProgress, "lost": Lost, "broken": Lost, "released": Lost}
_AGAIN = (429, 502, 503, 504)  # the same request may succeed, here or at another server


def _now():
    """Seconds of a clock that nobody sets, and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def _milliseconds(ttl):
    """The TTL as requests have it, which is refused if it is of another unit."""
    if not 1 <= ttl <= 3600:
        raise ValueError(f"ttl={ttl}: want seconds, from 1 to 3600; a lease is renewed for as long as the work takes")
    return int(ttl * 1000)


class Client:
    """A client of the servers of one store, each of which answers for every lease.

    `urls` has their URLs, with spaces between them. Others see the holder as `holder` says:
    {"host": ..., "pid": ..., "program": ..., "label": ...}.
    """

    def __init__(self, urls, token=None, holder=None):
        self._urls = [url.rstrip("/") for url in urls.split()]
        for url in self._urls or [urls]:
            parts = urllib.parse.urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise ValueError(f"{url!r} is not a URL of a holdfast server: want http://HOST:PORT")
        self._at = 0  # the server that is asked first
        self._reached = False  # a server has taken a request
        self._headers = {"Content-Type": "application/json"}
        if token:
            self._headers["Authorization"] = "Bearer " + token
        program = os.path.basename(sys.argv[0]) if sys.argv else ""
        self._holder = holder or {"host": socket.gethostname(), "pid": os.getpid(), "program": program or "python"}

    def lock(self, name, ttl=30, wait=0, on_loss=None, **more):
        """Take the lock, and keep it until the Lease is released, or lost.

        Waits in the queue for `wait` seconds, then raises Held. `on_loss` is called on a
        thread of the lease. `more` are further fields of the request, such as
        mode="shared", reason="nightly" or min_token=7.
        """
        key = secrets.token_hex(16)
        try:
            before, _, answer = self._turn("/v1/leases", {"name": name, **more}, key, ttl, wait)
        except BaseException as failed:
            self._cancel(name, key)
            raise failed.with_traceback(None) from None  # where in here says nothing to its users
        return Lease(self, answer, before, on_loss)

    def hold(self, name, ttl=30, wait=0, on_loss=None, direct=False, **more):
        """As `lock`, but the server renews the lease, and says so on a stream: docs/reference/hold-stream.md.

        `direct` frees the lock at once if this process dies. Where a proxy, a mesh or a tunnel
        is between here and the server, it lets two work at once.
        """
        body = {"name": name, "holder": self._holder, "ttl_ms": _milliseconds(ttl), "wait_ms": int(wait * 1000), **more}
        lines = self._lines(body, min(ttl / 3, 10), "&direct=1" if direct else "")
        for sent, line in lines:
            if line["event"] == "acquired":
                return _Held(self, line, sent, on_loss, lines)
            if line["event"] == "refused":
                raise _KINDS.get(line["code"], Problem)(409, line)
        raise Unavailable("the stream has ended")

    def _lines(self, body, quiet, query):
        """The lines of a stream, each with when the request was sent. A stream that ends
        goes on, with the same key, at the next server; one that is silent does not."""
        headers = {**self._headers, "Idempotency-Key": secrets.token_hex(16)}
        until, refusals = _now() + 15, 0
        while True:
            at, sent = self._at, _now()
            request = urllib.request.Request(self._urls[at] + "/v1/leases?hold=1" + query, json.dumps(body).encode(), headers)
            try:
                with urllib.request.urlopen(request, timeout=quiet) as stream:
                    self._reached = True
                    for line in stream:
                        yield sent, json.loads(line)
                        until = _now() + 15
            except urllib.error.HTTPError as refused:
                why = _problem(refused)
                if why.status not in _AGAIN:
                    raise why from None
            except TimeoutError:
                return  # silence: it may have heard what we have not
            except (OSError, http.client.HTTPException, ValueError) as failed:
                refusals += self._refused(failed)
                if not self._reached and refusals >= len(self._urls):
                    raise self._nobody("/v1/leases", failed) from None
            self._at = (at + 1) % len(self._urls)
            if _now() >= until:
                return
            time.sleep(0.05)

    def once(self, key, work, ttl=30, wait=0, retention=86400, **more):
        """Call work(lease) unless that was done under this key, and return its result, which
        is whatever JSON can say, either way. If `work` raises, the next caller does it.

        Waits for `wait` seconds for somebody else who does it now, then raises InProgress.
        """
        path = "/v1/once/" + urllib.parse.quote(key, safe="")
        before, status, answer = self._turn(path, more, secrets.token_hex(16), ttl, wait)
        if status == 200:
            return answer.get("result")
        lease = Lease(self, answer, before)
        try:
            result = work(lease)
            lease.check()
            body = {"lease_id": lease.id, "result": result, "retention_ms": int(retention * 1000)}
            self.ask("PUT", path + "/result", body)
            return result
        except BaseException:
            try:
                self.ask("POST", path + "/fail", {"lease_id": lease.id}, within=2)
            except Error:
                pass  # the lease ends by itself
            raise
        finally:
            lease.leave()

    def _turn(self, path, body, key, ttl, wait):
        """Ask for a lease until there is an answer, and wait for `wait` seconds in the queue."""
        until = _now() + wait
        while True:
            # A short wait at a time: the deadline counts from before the request.
            left = max(0, until - _now())
            piece = min(left, ttl / 3)
            times = {"ttl_ms": _milliseconds(ttl), "wait_ms": int(piece * 1000)}
            before, status, answer = self.ask(
                "POST", path, {"holder": self._holder, **body, **times}, key=key, within=piece + 15, patience=piece + 5, comes_back=piece < left)
            if status != 202:
                return before, status, answer
            # We have a place in the queue, which the next request with this key keeps.

    def _cancel(self, name, key):
        """Leave the queue, and give back what may have been granted without our knowing."""
        if not self._reached:
            return
        try:
            self.ask("POST", "/v1/leases/release", {"name": name}, key=key, within=2)
        except Error:
            pass  # it ends by itself

    def ask(self, method, path, body=None, key=None, within=15, patience=5, comes_back=False):
        """Ask one server after the other for `within` seconds, and return when the request
        was sent that was answered, the status, and the answer. Each request may be repeated:
        the servers know it by the lease ID, or by its key. If all refuse the connection, and
        none has ever taken a request, that is an error at once: most likely a URL is wrong.
        """
        headers = {**self._headers, "Idempotency-Key": key} if key else {**self._headers}
        if comes_back:  # else a wait that ends without the lock leaves no place in the queue
            headers["Prefer"] = "respond-async"
        data = json.dumps(body).encode() if body is not None else None
        until, pause, refusals = _now() + within, 0.05, 0
        while True:
            at, before = self._at, _now()
            request = urllib.request.Request(self._urls[at] + path, data, headers, method=method)
            try:
                timeout = max(0.01, min(patience, until - before))
                with urllib.request.urlopen(request, timeout=timeout) as response:
                    text = response.read()
                    self._reached = True
                    return before, response.status, json.loads(text) if text else None
            except urllib.error.HTTPError as refused:
                self._reached, why = True, _problem(refused)
                if why.status not in _AGAIN:
                    raise why from None
            except (OSError, http.client.HTTPException, ValueError) as failed:
                why = failed
                refusals += self._refused(failed)
            if self._at == at:  # or another thread has moved on already
                self._at = (at + 1) % len(self._urls)
            if _now() + pause >= until or not self._reached and refusals >= len(self._urls):
                raise self._nobody(path, why) from None
            time.sleep(pause)
            pause = min(2 * pause, 1)

    def _refused(self, failed):
        """Whether a server has refused the connection, and so has heard of no request."""
        refused = isinstance(getattr(failed, "reason", failed), (ConnectionRefusedError, socket.gaierror))
        self._reached = self._reached or not refused
        return refused

    def _nobody(self, path, why):
        return Unavailable(f"no server has answered {path}: {getattr(why, 'reason', why)}; asked: {' '.join(self._urls)}")


def _problem(refused):
    try:
        body = json.load(refused)
    except ValueError:  # from a proxy
        body = {}
    return _KINDS.get(body.get("code"), Problem)(refused.code, body)


class Lease:
    """A lock that is held. It is renewed in the background. Use it in a `with` block."""

    def __init__(self, client, answer, before, on_loss=None):
        self.name, self.id, self.token = answer["name"], answer["lease_id"], answer["fencing_token"]
        self.lost = threading.Event()  # set when the lease is lost, before another can have it
        self._client, self._ttl, self._on_loss = client, answer["ttl_ms"] / 1000, on_loss
        self._grace = self._ttl / 20  # for a command to end by itself, once the lease is lost
        self._trusted(before, answer)
        self._ended, self._ending = threading.Event(), threading.Lock()
        for work in self._renew, self._watch:
            threading.Thread(target=work, daemon=True).start()

    def _trusted(self, before, answer):
        # From before the request was sent, so that the store counts longer than we do. A
        # tenth is for clocks that are slewed, and a twentieth for work to stop in.
        self._deadline = before + answer["expires_in_ms"] / 1000 * 0.85

    def _renew(self):
        while not self._ended.wait(self._ttl / 3):
            body = {"name": self.name, "lease_id": self.id, "fencing_token": self.token, "ttl_ms": int(self._ttl * 1000)}
            try:
                before, _, answer = self._client.ask(
                    "POST", "/v1/leases/renew", body, within=self._deadline - _now(), patience=self._ttl / 6)
                self._trusted(before, answer)
            except Lost:
                return self._lose()
            except Error:
                pass  # asked again until the deadline

    def _watch(self):
        """Tell the loss at the deadline, whatever the renewal is waiting for."""
        while not self._ended.wait(max(0, min(self._deadline - _now(), 1))):
            if _now() >= self._deadline:
                return self._lose()

    def _lose(self):
        with self._ending:
            if self._ended.is_set():
                return
            self._ended.set()
            self.lost.set()
        if self._on_loss:
            self._on_loss()

    def check(self):
        """Raise Lost if the lease is lost."""
        if self.lost.is_set() or _now() >= self._deadline:
            raise Lost(410, {"code": "lost", "detail": f'the lease of "{self.name}" is lost'})

    def run(self, argv, **more):
        """Run a command under the lease, with the token in its environment, and return its
        status. When the lease is lost, it is stopped before another can have the lock.
        """
        env = {**os.environ, **more.pop("env", {}), "HOLDFAST_NAME": self.name, "HOLDFAST_FENCING_TOKEN": str(self.token)}
        with subprocess.Popen(argv, env=env, start_new_session=True, **more) as job:
            while not self.lost.wait(0.05):
                if job.poll() is not None:
                    return job.returncode
            for signal, grace in (15, self._grace), (9, None):
                try:
                    os.killpg(job.pid, signal)
                    job.wait(grace)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
        self.check()

    def leave(self):
        """Stop renewing the lease, and leave it as it is."""
        with self._ending:
            self._ended.set()

    def release(self):
        """Give the lock back. Raises Lost if it was lost before."""
        self.leave()
        self.check()
        self._client.ask("POST", "/v1/leases/release", {"name": self.name, "lease_id": self.id}, within=self._deadline - _now())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.release()
        except Unavailable:
            pass  # the work is done, and the lease ends by itself
        except Error:
            if kind is None:  # what the work has raised says more
                raise


class _Held(Lease):
    """A lock that is held by a stream."""

    def __init__(self, client, line, sent, on_loss, lines):
        self._quiet, self._lines, self._sent = line["quiet_ms"] / 1000, lines, None
        super().__init__(client, line, sent, on_loss)
        self._grace = self._quiet / 10

    def _trusted(self, sent, line):
        # The server began to count after we had sent the request, and had made the line when
        # we read it: that is earlier if our clock is slower. A tenth is for work to stop in.
        if sent != self._sent:
            self._sent = self._began = sent
        self._began = min(self._began, _now() - line["at_ms"] / 1000)
        self._deadline = self._began + line["at_ms"] / 1000 + 0.9 * self._quiet

    def _renew(self):
        try:
            for sent, line in self._lines:
                if self._ended.is_set():
                    return
                if line["event"] not in ("acquired", "ping", "moved") or line.get("fencing_token", self.token) != self.token:
                    break
                if line["event"] != "moved":
                    self._trusted(sent, line)
        except Error:
            pass
        self._lose()
