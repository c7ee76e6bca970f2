//! Receives the response to a request.

use super::BidiStream;
use bytes::Bytes;
use h3::client::RequestStream;
use h3::error::StreamError;
use http::Response;

/// Receives the final response. Interim responses may precede it (RFC 9114 section 4.1); they are skipped.
///
/// # Errors
/// If the stream fails or the response is malformed.
pub async fn final_response(stream: &mut RequestStream<BidiStream, Bytes>) -> Result<Response<()>, StreamError> {
    loop {
        let response = stream.recv_response().await?;
        if !response.status().is_informational() {
            return Ok(response);
        }
    }
}
