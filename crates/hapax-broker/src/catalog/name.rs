//! Which names a topic can have: Kafka's rules.

/// Whether a name is one; otherwise what is wrong with it, in Kafka's words.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    match name {
        "" => Err("Topic name is invalid: the empty string is not allowed".to_owned()),
        "." | ".." => Err(format!("Topic name is invalid: '{name}' is not allowed")),
        _ if name.len() > 249 => {
            Err(format!("Topic name is invalid: the length of '{name}' is longer than the max allowed length 249"))
        }
        _ if !name.bytes().all(legal) => Err(format!(
            "Topic name is invalid: '{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
        )),
        _ => Ok(()),
    }
}

/// Two topics whose names differ only in `.` and `_` would share a metric's name: Kafka refuses the second.
pub(crate) fn collision_key(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: Kafka's names pass, others do not. Method: a table.
    #[test]
    fn a_topic_name_is_checked_as_kafka_does() {
        let long = "x".repeat(249);
        for name in ["a", "orders.v1", "__internal", "A-b_c.9", "...", long.as_str()] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        let longer = "x".repeat(250);
        for name in ["", ".", "..", "a b", "ä", "a/b", "a\0", longer.as_str()] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert_eq!(collision_key("a.b_c"), collision_key("a_b.c"));
    }
}
