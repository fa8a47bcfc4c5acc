//! Lists of names in one line of text.

/// Up to so many names are listed one by one.
const MOST: usize = 6;

/// The names, joined; of more than a few the first and the last, and how many there are.
#[must_use]
pub fn fold_names<T: AsRef<str>>(names: &[T], between: &str) -> String {
    match names {
        [first, hidden @ .., last] if names.len() > MOST => {
            let (first, last) = (first.as_ref(), last.as_ref());
            format!("{first}{between}… {} more …{between}{last}", hidden.len())
        }
        names => names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(between),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a long list keeps its ends and its count. Method: none, one, as many as are listed, one more, and hundreds.
    #[test]
    fn a_long_list_keeps_its_ends_and_its_count() {
        let names = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        for (count, folded) in
            [(0, ""), (1, "0"), (6, "0, 1, 2, 3, 4, 5"), (7, "0, … 5 more …, 6"), (557, "0, … 555 more …, 556")]
        {
            assert_eq!(fold_names(&names(count), ", "), folded);
        }
    }
}
