//! Renders the OpenAPI document as one HTML page without scripts.

use std::fmt::Write as _;

use serde_json::Value;

pub(crate) fn page(document: &Value) -> String {
    let mut body = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut body, document);
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Moothall API</title>\
         <link rel=\"stylesheet\" href=\"/api-docs.css\"></head><body><main>{body}</main></body></html>"
    )
}

fn write(body: &mut String, document: &Value) -> std::fmt::Result {
    let version = escaped(document["info"]["version"].as_str().unwrap_or_default());
    write!(
        body,
        "<h1>Moothall API</h1><p>Version {version}. Machine-readable: \
         <a href=\"/api/openapi.json\">openapi.json</a>.</p><h2>Endpoints</h2>"
    )?;
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let (method, path) = (escaped(&method.to_ascii_uppercase()), escaped(path));
            let summary = escaped(operation["summary"].as_str().unwrap_or_default());
            let detail = escaped(&format!("{operation:#}"));
            write!(
                body,
                "<details><summary><b>{method}</b> <code>{path}</code> {summary}</summary>\
                 <pre>{detail}</pre></details>"
            )?;
        }
    }
    body.push_str("<h2>Types</h2>");
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let (name, detail) = (escaped(name), escaped(&format!("{schema:#}")));
        write!(
            body,
            "<details><summary><code>{name}</code></summary><pre>{detail}</pre></details>"
        )?;
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
