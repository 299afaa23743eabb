"""A mail server on loopback: aiosmtpd with TLS and a password. Writes every mail to a file of its own."""

import asyncio
import pathlib
import ssl
import sys
import warnings

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

# The TLS socket below the protocol is invisible to it.
warnings.simplefilter("ignore")
USER, PASSWORD = b"moothall@example.com", b"correct-horse"


class Mailbox:
    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder

    async def handle_DATA(self, server, session, envelope) -> str:
        number = len(list(self.folder.glob("*.eml")))
        head = f"X-Rcpt: {','.join(envelope.rcpt_tos)}\r\n"
        fresh = self.folder / "mail.new"
        fresh.write_bytes(head.encode() + envelope.original_content)
        fresh.rename(self.folder / f"{number}.eml")
        return "250 accepted"


def authenticate(server, session, envelope, mechanism, data) -> AuthResult:
    right = isinstance(data, LoginPassword) and (data.login, data.password) == (USER, PASSWORD)
    # Not handled: the server answers a wrong password itself.
    return AuthResult(success=right, handled=right)


def certificates(folder: pathlib.Path) -> ssl.SSLContext:
    """Reuses the authority of an earlier start, so that a server that is down and up again keeps its certificate."""
    chain = folder / "server.pem"
    if not chain.exists():
        authority = trustme.CA()
        authority.cert_pem.write_to_path(folder / "ca.pem")
        authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(chain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    return context


async def main(folder: pathlib.Path, port: int, mode: str) -> None:
    context = certificates(folder)
    has_tls = mode == "tls"

    def connection() -> SMTP:
        return SMTP(
            Mailbox(folder),
            hostname="mail.example.com",
            authenticator=authenticate,
            auth_required=True,
            # Behind a TLS socket the protocol itself sees no TLS.
            auth_require_tls=not has_tls,
            require_starttls=not has_tls,
            tls_context=None if has_tls else context,
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", port, ssl=context if has_tls else None)
    print(f"READY {server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


asyncio.run(main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
