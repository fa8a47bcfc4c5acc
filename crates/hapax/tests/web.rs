//! A browser of a few lines: what a process shows.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use crate::world::{Worker, until};

/// Where a worker serves its pages, as its log says.
pub(crate) fn address(worker: &Worker) -> String {
    worker.until_it_says("address=");
    let said = worker.said();
    let rest = said.split("address=").nth(1).expect("an address");
    rest.split_whitespace().next().expect("an address").to_owned()
}

/// GET; the status and the body.
pub(crate) fn get(address: &str, path: &str) -> (u16, String) {
    get_with(address, path, "")
}

/// The same with a header line.
pub(crate) fn get_with(address: &str, path: &str, header: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("the port is open");
    stream.set_read_timeout(Some(Duration::from_secs(120))).expect("a timeout");
    let extra = if header.is_empty() { String::new() } else { format!("{header}\r\n") };
    let host = if header.starts_with("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    write!(stream, "GET {path} HTTP/1.1\r\n{host}Connection: close\r\n{extra}\r\n").expect("the request is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// GET, and the body as JSON.
pub(crate) fn get_json(address: &str, path: &str) -> (u16, Value) {
    let (status, body) = get(address, path);
    (status, serde_json::from_str(&body).unwrap_or_else(|error| panic!("no JSON ({error}): {body}")))
}

/// The value of the first line of a metrics page that begins with `name` and holds all `labels`.
pub(crate) fn metric(page: &str, name: &str, labels: &[&str]) -> Option<f64> {
    let line = page.lines().find(|line| {
        let rest = line.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(['{', ' '])) && labels.iter().all(|label| line.contains(label))
    })?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Waits until a metric of a live worker has this value.
pub(crate) fn until_metric(address: &str, name: &str, labels: &[&str], value: f64) {
    until(&format!("{name} {labels:?} is {value}"), || {
        metric(&get(address, "/metrics").1, name, labels) == Some(value)
    });
}
