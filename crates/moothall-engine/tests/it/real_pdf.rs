//! PDFs in real sandboxes: valid ones become text, and malicious ones are reported as missing and
//! leave nothing on the host.

use std::sync::Arc;
use std::time::Duration;

use moothall_core::sandbox::IsolationClass;
use moothall_engine::SandboxExecutor;
use moothall_sandbox::{
    EngineName, HostOptions, MemoryBudget, PoolOptions, SandboxHost, SandboxPolicy,
    SandboxRegistry, SandboxRunner, SharedKernel,
};
use moothall_sources::DocumentFolder;

use crate::real_debate::{guest, images, jail, target};

/// A PDF with these objects, numbered from 1; the first one is the catalog.
fn pdf(objects: &[Vec<u8>], trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut places = Vec::new();
    for (number, object) in (1..).zip(objects) {
        places.push(file.len());
        file.extend(format!("{number} 0 obj\n").bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let (table, size) = (file.len(), objects.len() + 1);
    file.extend(format!("xref\n0 {size}\n0000000000 65535 f \n").bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let end =
        format!("trailer\n<< /Size {size} /Root 1 0 R {trailer}>>\nstartxref\n{table}\n%%EOF\n");
    file.extend(end.bytes());
    file
}

fn stream(dictionary: &str, bytes: &[u8]) -> Vec<u8> {
    let mut object = format!("<< {dictionary} /Length {} >>\nstream\n", bytes.len()).into_bytes();
    object.extend(bytes);
    object.extend(b"\nendstream");
    object
}

/// One page with this content; further objects are numbered from 6.
fn page(content: Vec<u8>, resources: &str, more: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let page = format!(
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Resources << /Font << /F1 5 0 R >> {resources} >> >>"
    );
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        page.into_bytes(),
        content,
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".to_vec(),
    ];
    objects.extend(more);
    objects
}

fn good() -> Vec<u8> {
    let text = b"BT /F1 12 Tf 72 720 Td (Acme raised list prices by 4% in May.) Tj ET";
    pdf(&page(stream("", text), "", Vec::new()), "")
}

fn encrypted() -> Vec<u8> {
    let text = b"BT /F1 12 Tf 72 720 Td (nobody can read this) Tj ET";
    let key = "0123456789ABCDEF".repeat(4);
    let lock = format!("<< /Filter /Standard /V 1 /R 2 /O <{key}> /U <{key}> /P -4 >>");
    let objects = page(stream("", text), "", vec![lock.into_bytes()]);
    pdf(&objects, &format!("/Encrypt 6 0 R /ID [<{key}> <{key}>] "))
}

/// Three megabytes that decompress to half a gigabyte: deflate's longest match of one repeated
/// byte, many times.
fn hungry() -> Vec<u8> {
    // A zlib stream with one block of fixed codes: a zero byte, then matches of length 258 at
    // distance 1. Length 258 is the code 285, eight bits 11000101; distance 1 is five bits 00000.
    let mut bits = Bits::default();
    bits.push(0b011, 3);
    bits.push_code(0b0011_0000, 8);
    for _ in 0..2_000_000 {
        bits.push_code(0b1100_0101, 8);
        bits.push_code(0, 5);
    }
    let mut packed = vec![0x78, 0xda];
    packed.extend(bits.bytes);
    pdf(&page(stream("/Filter /FlateDecode", &packed), "", Vec::new()), "")
}

#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    used: u32,
}

impl Bits {
    fn push(&mut self, value: u32, count: u32) {
        for at in 0..count {
            if self.used.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let bit = u8::from((value >> at) & 1 == 1) << (self.used % 8);
            *self.bytes.last_mut().unwrap() |= bit;
            self.used += 1;
        }
    }

    /// Codes are written most significant bit first.
    fn push_code(&mut self, code: u32, count: u32) {
        self.push(code.reverse_bits() >> (32 - count), count);
    }
}

/// Forty forms that each draw the next one twice.
fn endless() -> Vec<u8> {
    const DEPTH: usize = 40;
    let form = |at: usize| {
        let next = if at + 1 < DEPTH { format!("{} 0 R", 7 + at) } else { "5 0 R".to_owned() };
        let dictionary = format!(
            "/Type /XObject /Subtype /Form /BBox [0 0 1 1] /Resources << /XObject << /X {next} >> >>"
        );
        stream(&dictionary, if at + 1 < DEPTH { b"/X Do /X Do" } else { b"q Q" })
    };
    let forms = (0..DEPTH).map(form).collect();
    pdf(&page(stream("", b"/X Do /X Do"), "/XObject << /X 6 0 R >>", forms), "")
}

async fn check(
    (engine, patience): (EngineName, Duration),
    files: &[(&str, Vec<u8>)],
    expected: (&[&str], &[&str]),
) {
    let (state, documents) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, bytes) in files {
        fs_err::write(documents.path().join(name), bytes).unwrap();
    }
    fs_err::write(documents.path().join("plan.md"), "A plan.").unwrap();
    let host = SandboxHost::open(HostOptions {
        images: images("documents"),
        cache: target().join("tmp/sandboxes"),
        state: state.path().to_owned(),
        guest: guest(),
        jail: jail(),
    })
    .unwrap();
    let policy = SandboxPolicy {
        engine: Some(engine),
        minimum: IsolationClass::SharedKernel,
        shared_kernel: SharedKernel::Refused,
    };
    let chosen = host.choose(&policy, "documents").await.unwrap();
    let options = PoolOptions { idle: 0, memory: MemoryBudget::new(2 << 30) };
    let executor = Arc::new(SandboxExecutor::new(SandboxRunner::new(chosen, options)));
    let folder = DocumentFolder::new(documents.path().to_owned(), Some(executor.clone()))
        .with_pdf_timeout(patience);
    let read = folder.read().await.unwrap();
    executor.shut_down().await;
    let texts: Vec<&str> = read
        .documents
        .iter()
        .flat_map(|one| one.passages.iter().map(|passage| passage.text.as_str()))
        .collect();
    let missing: Vec<&str> = read.missing.iter().map(String::as_str).collect();
    assert_eq!((texts.as_slice(), missing.as_slice()), expected);
    // No sandbox is left.
    let live = SandboxRegistry::list(&SandboxHost::records(state.path())).unwrap();
    assert!(live.is_empty(), "{live:?}");
}

#[tokio::test]
async fn runsc_reads_good_pdfs_and_survives_malicious_ones() {
    let files = [
        ("bomb.pdf", hungry()),
        ("broken.pdf", b"%PDF-1.4\nnothing at all".to_vec()),
        ("endless.pdf", endless()),
        ("locked.pdf", encrypted()),
        ("report.pdf", good()),
    ];
    let missing = [
        "bomb.pdf: the PDF extractor used more than 256 MiB and was stopped",
        "broken.pdf: not a readable PDF",
        "endless.pdf: the PDF extractor timed out after 20 seconds",
        "locked.pdf: the PDF is encrypted",
    ];
    let texts = ["A plan.", "Acme raised list prices by 4% in May."];
    check((EngineName::Runsc, Duration::from_secs(20)), &files, (&texts, &missing)).await;
}

#[tokio::test]
async fn microvm_reads_a_good_pdf_and_survives_a_bomb() {
    let files = [("bomb.pdf", hungry()), ("report.pdf", good())];
    let missing = ["bomb.pdf: the PDF extractor used more than 256 MiB and was stopped"];
    let texts = ["A plan.", "Acme raised list prices by 4% in May."];
    // Memory must be the limit that stops the reader, even on an emulated and busy machine.
    check((EngineName::Microvm, Duration::from_secs(180)), &files, (&texts, &missing)).await;
}
