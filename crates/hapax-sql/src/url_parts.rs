//! The small pieces of reading an address: percent-encoding, host and port, the most similar parameter.

/// Undoes percent-encoding. `+` stays `+`, as the databases' own clients have it.
/// None if it is broken, or not UTF-8.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok())?;
            // `from_str_radix` would also take a sign.
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Cuts `host:port`, `[::1]:port`, `host`; an absent port is empty.
pub(crate) fn host_and_port(entry: &str) -> (&str, &str) {
    if let Some((address, after)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (address, after.strip_prefix(':').unwrap_or(after));
    }
    entry.rsplit_once(':').unwrap_or((entry, ""))
}

/// The known name that needs the fewest changes.
pub(crate) fn nearest(name: &str, known: &[&'static str]) -> &'static str {
    known.iter().min_by_key(|candidate| distance(name, candidate)).copied().unwrap_or_default()
}

fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (line, a) in left.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, b) in right.iter().enumerate() {
            let changed = diagonal + usize::from(a != *b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}
