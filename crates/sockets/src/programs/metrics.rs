//! Metrics for Prometheus: the response to every HTTP request contains all of them.

use fullpipe_masque::metrics::Metrics;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Maximum number of bytes read from a request before the response.
const REQUEST_BYTES: usize = 8 << 10;

/// Time limit per client.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts the service at `address` and returns the address with the port in use.
pub(super) async fn start(address: SocketAddr, metrics: Arc<Metrics>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        loop {
            // One connection at a time is enough for a scraper that connects every few seconds. Lack of file
            // descriptors is not fatal.
            match listener.accept().await {
                Ok((stream, _)) => drop(tokio::time::timeout(PATIENCE, answer(stream, &metrics)).await),
                Err(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    });
    Ok(address)
}

async fn answer(mut stream: TcpStream, metrics: &Metrics) -> io::Result<()> {
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_BYTES {
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            count => request.extend_from_slice(&piece[..count]),
        }
    }
    let body = metrics.render();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}
