//! What letters of one cause share, made from what a database says about a row. Pure.

/// The message with what may be a row's own value taken out: runs of digits, and text in one of these `quotes`.
pub(crate) fn without_values(message: &str, quotes: &[char]) -> String {
    let mut out = String::with_capacity(message.len());
    let mut rest = message.chars().peekable();
    while let Some(next) = rest.next() {
        if next.is_ascii_digit() {
            while rest.next_if(char::is_ascii_digit).is_some() {}
            out.push('#');
        } else if quotes.contains(&next) {
            let ended = rest.by_ref().any(|c| c == next);
            out.push(next);
            out.push('…');
            if ended {
                out.push(next);
            }
        } else {
            out.push(next);
        }
    }
    out
}

/// The error's own code, and the rule by its name where the server gives one; else the `words` without values.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn fingerprint(code: &str, places: &[(&str, &Option<String>)], words: impl FnOnce() -> String) -> String {
    let named = places.iter().filter_map(|(what, name)| Some(format!("{what} \"{}\"", name.as_ref()?)));
    let named: Vec<String> = named.collect();
    if named.is_empty() { format!("{code}: {}", words()) } else { format!("{code}: {}", named.join(", ")) }
}
