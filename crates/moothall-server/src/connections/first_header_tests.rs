use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

/// Returns the first header read from a connection that sends these pieces.
async fn first_header(pieces: &[&[u8]]) -> Option<Bytes> {
    let (mut client, mut server) = tokio::io::duplex(1 << 20);
    let send = async {
        for piece in pieces {
            client.write_all(piece).await.unwrap();
            tokio::task::yield_now().await;
        }
        drop(client);
    };
    tokio::join!(send, read_first_header(&mut server)).1.unwrap()
}

#[tokio::test]
async fn first_header_is_complete_at_its_empty_line() {
    let whole: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let every_byte: Vec<&[u8]> = whole.chunks(1).collect();
    assert_eq!(first_header(&[whole]).await.as_deref(), Some(whole));
    assert_eq!(first_header(&every_byte).await.as_deref(), Some(whole));
    assert_eq!(first_header(&[b"\r\n\r\n", b"\n", whole]).await.as_deref(), Some(whole));
    let bare: &[u8] = b"GET / HTTP/1.1\nhost: a\n\n";
    assert_eq!(first_header(&[bare]).await.as_deref(), Some(bare));
    let preface: Vec<&[u8]> = HTTP2_PREFACE.chunks(1).collect();
    assert_eq!(first_header(&preface).await.as_deref(), Some(HTTP2_PREFACE));
    for half in [&b""[..], b"\r\n\r\n", b"GET / HTTP/1.1\r\nhost: a\r\n", &HTTP2_PREFACE[..20]] {
        assert_eq!(first_header(&[half]).await, None, "{half:?}");
    }
    let tls: &[u8] = b"\x16\x03\x01";
    assert_eq!(first_header(&[tls]).await.as_deref(), Some(tls));
    let long = vec![b'a'; MAX_HEADER_BYTES];
    assert_eq!(first_header(&[&long]).await.map(|header| header.len()), Some(MAX_HEADER_BYTES));
}

#[tokio::test]
async fn a_prefixed_stream_returns_every_byte_once() {
    let (mut client, server) = tokio::io::duplex(64);
    let mut stream = PrefixedStream::new(Bytes::from_static(b"first "), server);
    client.write_all(b"second").await.unwrap();
    let mut text = [0; 12];
    stream.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"first second");
    stream.write_all(b"answer").await.unwrap();
    let mut text = [0; 6];
    client.read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"answer");
}
