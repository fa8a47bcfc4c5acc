//! The name that someone probably meant.

/// The known name nearest to `written`, if one is near enough to be worth offering.
#[must_use]
pub fn nearest<'a>(written: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // Nobody mistypes a name of such length, and the distance costs its square.
    const LONGEST: usize = 60;
    if written.len() > LONGEST {
        return None;
    }
    let plain = plain(written);
    let allowed = (plain.chars().count() / 3).clamp(1, 3);
    known
        .map(|name| (distance(&plain, &self::plain(name)), name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Case, hyphens and underscores do not count: `key_fields` is `keyFields`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).collect()
}

/// How many letters must be added, removed, changed or swapped with their neighbour.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    let mut previous = None;
    for (row, a) in left.chars().enumerate() {
        let mut current = vec![row + 1];
        for (column, b) in right.iter().enumerate() {
            let changed = last[column] + usize::from(a != *b);
            let mut best = changed.min(last[column + 1] + 1).min(current[column] + 1);
            if column > 0 && previous == Some(*b) && right[column - 1] == a {
                best = best.min(before[column - 1] + 1);
            }
            current.push(best);
        }
        before = std::mem::replace(&mut last, current);
        previous = Some(a);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: typing errors find their name, other words none. Method: each kind of slip, and strangers.
    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let known = ["guarantee", "mechanism", "keyFields", "ttl", "maxAttempts"];
        for (written, meant) in [
            ("guarentee", Some("guarantee")),
            ("garantee", Some("guarantee")),
            ("guaranteee", Some("guarantee")),
            ("gaurantee", Some("guarantee")),
            ("key_fields", Some("keyFields")),
            ("KEYFIELDS", Some("keyFields")),
            ("tll", Some("ttl")),
            ("max-attempt", Some("maxAttempts")),
            ("table", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(written, known.into_iter()), meant, "{written}");
        }
        assert_eq!(nearest(&"g".repeat(1000), known.into_iter()), None);
    }

    /// Goal: the distance is the number of slips. Method: pairs counted by hand.
    #[test]
    fn a_swap_counts_once() {
        for (left, right, slips) in
            [("ab", "ba", 1), ("abc", "abc", 0), ("", "abc", 3), ("abcd", "acbd", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(left, right), slips);
            assert_eq!(distance(right, left), slips);
        }
    }
}
