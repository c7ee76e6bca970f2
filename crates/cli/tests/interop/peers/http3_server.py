"""Serves one file over HTTP/3 with aioquic, for every requested path: http3_server.py CERT KEY FILE."""

import asyncio
import sys

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

certificate, key, file = sys.argv[1:]
with open(file, "rb") as opened:
    body = opened.read()


class Server(QuicConnectionProtocol):
    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        self.http = H3Connection(self._quic)

    def quic_event_received(self, event):
        for received in self.http.handle_event(event):
            if isinstance(received, HeadersReceived):
                length = str(len(body)).encode()
                self.http.send_headers(received.stream_id, [(b":status", b"200"), (b"content-length", length)])
                self.http.send_data(received.stream_id, body, end_stream=True)
                self.transmit()


async def main():
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(certificate, key)
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Server)
    host, port = server._transport.get_extra_info("sockname")
    print(f"listening on {host}:{port}", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
