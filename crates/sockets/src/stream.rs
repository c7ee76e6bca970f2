//! A TCP connection to a target, on tokio.

use bytes::Bytes;
use fullpipe_masque::environment::ConnectedStream;
use socket2::SockRef;
use std::cell::RefCell;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::TcpStream;

/// Maximum number of bytes that one read returns.
const CHUNK_BYTES: usize = 64 << 10;

thread_local! {
    /// Receive buffer from which data is copied. There is one per thread, so that an idle connection has none.
    static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An established TCP connection.
#[derive(Debug)]
pub(crate) struct ConnectedTcpStream(TcpStream);

impl ConnectedTcpStream {
    pub(crate) async fn connect(peer: SocketAddr) -> io::Result<ConnectedTcpStream> {
        let stream = TcpStream::connect(peer).await?;
        // The proxy does not delay what the client has sent.
        stream.set_nodelay(true)?;
        Ok(ConnectedTcpStream(stream))
    }

    fn read(&self) -> io::Result<Bytes> {
        ROOM.with_borrow_mut(|room| {
            room.resize(CHUNK_BYTES, 0);
            let length = self.0.try_read(room)?;
            Ok(Bytes::copy_from_slice(&room[..length]))
        })
    }
}

impl ConnectedStream for ConnectedTcpStream {
    fn poll_read(&self, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.read() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn poll_write(&self, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match self.0.try_write(data) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                other => return Poll::Ready(other),
            }
        }
    }

    fn finish(&self) -> io::Result<()> {
        SockRef::from(&self.0).shutdown(Shutdown::Write)
    }

    fn reset(&self) {
        // With a linger time of zero, the close sends RST. If it fails, the close sends FIN.
        let _ = SockRef::from(&self.0).set_linger(Some(Duration::ZERO));
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}
