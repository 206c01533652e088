"""Optuna's dashboard over the advisor's database."""

import errno
from collections.abc import Callable
from contextlib import suppress
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from advisor.errors import AdvisorError
from advisor.records.storage_url import parse_storage_url
from advisor.tuning.database import open_tables

_LARGEST_PORT = 65535


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _QuietHandler(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing about requests."""


def serve_dashboard(
    url: str,
    host: str = "127.0.0.1",
    port: int = 8080,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve the studies in the database ``url`` until Ctrl-C; tell ``ready`` the address once it answers.

    The dashboard asks nobody who they are, and whoever reaches it can delete a study: leave ``host`` as it
    is on a machine that others can reach. Raises AdvisorError where ``port`` cannot be used.
    """
    with _listening(url, host, port) as server, suppress(KeyboardInterrupt):
        ready(f"http://{host}:{server.server_port}/")
        server.serve_forever()


def _listening(url: str, host: str, port: int) -> WSGIServer:
    from optuna_dashboard import wsgi

    if not 0 <= port <= _LARGEST_PORT:
        raise AdvisorError(f"Port {port} does not exist; give one from 1024 to {_LARGEST_PORT}.")
    app = wsgi(open_tables(parse_storage_url(url)))
    try:
        return make_server(host, port, app, server_class=_Server, handler_class=_QuietHandler)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            reason = "another program uses it (perhaps a dashboard that is already open)"
        else:
            reason = (error.strerror or str(error)).lower()
        raise AdvisorError(
            f"The dashboard cannot be served at {host}, port {port}: {reason}. Give another with --port."
        ) from error
