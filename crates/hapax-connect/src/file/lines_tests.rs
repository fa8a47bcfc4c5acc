use std::io::Write as _;

use super::*;

const PLENTY: usize = 1000;

fn file_of(parts: &[&[u8]]) -> Feed {
    let mut file = tempfile::tempfile().expect("a temporary file");
    for part in parts {
        file.write_all(part).expect("it takes bytes");
    }
    Feed::new(file)
}

fn all_lines(mut file: Feed, max_line: usize) -> Vec<(u64, Vec<u8>)> {
    all(&mut file, Cut::Lines, max_line).0
}

/// All records, and how they stand at the end of the file.
fn all(file: &mut Feed, cut: Cut, max_line: usize) -> (Vec<(u64, Vec<u8>)>, Lines) {
    let mut lines = Lines::new(0, cut, max_line, Seam::LineStart);
    let mut found = Vec::new();
    loop {
        match lines.next(file, &mut { PLENTY }).expect("the file is readable") {
            Found::Line => {
                found.push((lines.offset(), lines.line().to_vec()));
                lines.pass();
            }
            Found::Long(long) => found.push((long.start, long.sha256.to_vec())),
            Found::End => return (found, lines),
            other @ (Found::Continued | Found::Pause | Found::Later) => panic!("{other:?}"),
        }
    }
}

/// Goal: lines come out whole wherever blocks are cut. Method: lengths around the size of a block, one after another.
#[test]
fn lines_are_whole_across_blocks() {
    let lengths = [1, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, 5 * BLOCK + 7, 2, BLOCK];
    let (mut content, mut expected) = (Vec::new(), Vec::new());
    for (number, length) in lengths.into_iter().enumerate() {
        let line = vec![b'a' + u8::try_from(number).expect("few lines"); length];
        expected.push((content.len() as u64, line.clone()));
        content.extend_from_slice(&line);
        content.push(b'\n');
    }
    assert_eq!(all_lines(file_of(&[&content]), 16 * 1024 * 1024), expected);
}

/// Goal: line ends of both kinds and blank lines are no content. Method: a file with all of them.
#[test]
fn carriage_returns_and_blank_lines_are_passed() {
    let file = file_of(&[b"\r\n  \n{}\r\n\n\t\n[]\n\r\n"]);
    assert_eq!(all_lines(file, 100), [(5, b"{}".to_vec()), (12, b"[]".to_vec())]);
}

/// Goal: `max_line` counts the line without its newline. Method: one byte around it, within one block.
#[test]
fn a_line_of_exactly_the_limit_is_a_line() {
    let file = file_of(&[b"12345\n123456\n1\n"]);
    let long: [u8; 32] = Sha256::digest(b"123456").into();
    assert_eq!(all_lines(file, 5), [(0, b"12345".to_vec()), (6, long.to_vec()), (13, b"1".to_vec())]);
}

/// Goal: a line of any length costs no memory. Method: 24 MiB against a limit of 1 MiB; look at the buffer on the way.
#[test]
fn a_long_line_is_hashed_and_not_held() {
    let long = vec![b'x'; 24 * 1024 * 1024];
    let mut file = file_of(&[b"{}\n", &long, b"\n[]\n"]);
    let mut lines = Lines::new(3, Cut::Lines, 1024 * 1024, Seam::LineStart);
    let found = loop {
        assert!(lines.block.capacity() < 4 * 1024 * 1024, "{}", lines.block.capacity());
        assert_eq!(lines.offset(), 3, "the place stays before the line until it is complete");
        match lines.next(&mut file, &mut 1).expect("the file is readable") {
            Found::Long(found) => break found,
            Found::Pause => {}
            other @ (Found::Line | Found::End | Found::Continued | Found::Later) => panic!("{other:?}"),
        }
    };
    assert_eq!((found.start, found.length, found.head.len()), (3, long.len() as u64, LETTER_HEAD_BYTES));
    assert_eq!(found.sha256, <[u8; 32]>::from(Sha256::digest(&long)));
    assert!(matches!(lines.next(&mut file, &mut { PLENTY }), Ok(Found::Line)));
    assert_eq!((lines.offset(), lines.line()), (3 + long.len() as u64 + 1, &b"[]"[..]));
}

/// Goal: memory of one large line is given back. Method: a line of many blocks, then small ones.
#[test]
fn the_buffer_shrinks_after_a_large_line() {
    let mut file = file_of(&[&vec![b'x'; 40 * BLOCK], b"\n", &vec![b'\n'; 3 * BLOCK]]);
    let mut lines = Lines::new(0, Cut::Lines, 64 * BLOCK, Seam::LineStart);
    assert!(matches!(lines.next(&mut file, &mut { PLENTY }), Ok(Found::Line)));
    lines.pass();
    assert!(matches!(lines.next(&mut file, &mut { PLENTY }), Ok(Found::End)));
    assert!(lines.block.capacity() <= 4 * BLOCK, "{}", lines.block.capacity());
}

/// Goal: only what surely goes on is called unfinished. Method: last lines of each sort.
#[test]
fn a_tail_is_whole_unless_it_is_the_beginning_of_a_value() {
    for (tail, expected) in [
        (&b""[..], Tail::Nothing),
        (b" \r", Tail::Nothing),
        (b"{\"a\":1}", Tail::Whole),
        (b"{\"a\":1}\r", Tail::Whole),
        (b"12", Tail::Whole),
        (b"{bad", Tail::Whole),
        (b"{} {", Tail::Whole),
        (b"{\"a\":\"\xff\"}", Tail::Whole),
        (b"{", Tail::Unfinished),
        (b"{\"a\":\"\xc3", Tail::Unfinished),
        (b"{\"a\":1", Tail::Unfinished),
        (b"tru", Tail::Unfinished),
    ] {
        let mut file = file_of(&[b"{}\n", tail]);
        let mut lines = Lines::new(3, Cut::Lines, 100, Seam::LineStart);
        assert!(matches!(lines.next(&mut file, &mut { PLENTY }), Ok(Found::End)));
        assert_eq!(lines.tail(), expected, "{}", String::from_utf8_lossy(tail));
    }
}

const CSV: Cut = Cut::Records(Dialect { delimiter: b',', quote: Some(b'"') });

fn records(content: &[u8], max_line: usize) -> Vec<(u64, String)> {
    let (found, _) = all(&mut file_of(&[content]), CSV, max_line);
    found.into_iter().map(|(at, record)| (at, String::from_utf8_lossy(&record).into_owned())).collect()
}

fn texts(content: &[u8], max_line: usize) -> Vec<String> {
    records(content, max_line).into_iter().map(|(_, record)| record).collect()
}

/// Goal: line ends in quotes are content. Method: records of every sort, with their places.
#[test]
fn a_record_goes_on_over_line_ends_in_quotes() {
    let found = records(b"a,b\r\n1,\"two\nlines\"\r\n\r\n\"x\"\"\n\",5' 6\"\n\"\",\"\"\n", 100);
    let expected = [(0, "a,b"), (5, "1,\"two\nlines\""), (22, "\"x\"\"\n\",5' 6\""), (35, "\"\",\"\"")];
    assert_eq!(found, expected.map(|(at, text)| (at, text.to_owned())));
}

/// Goal: records come out whole wherever blocks are cut. Method: quotes and doubled quotes around the size of a block.
#[test]
fn records_are_whole_across_blocks() {
    for length in [BLOCK - 4, BLOCK - 3, BLOCK - 2, BLOCK - 1, BLOCK, BLOCK + 1] {
        let record = format!("{},\"\"\"\n,\"", "x".repeat(length));
        let content = format!("{record}\r\n1,2\n");
        assert_eq!(texts(content.as_bytes(), 1 << 24), [record, "1,2".into()], "{length}");
    }
}

/// Goal: a stray quote costs its own line and no other. Method: one that closes elsewhere, one that never does.
#[test]
fn a_stray_quote_does_not_swallow_what_follows() {
    let stray = b"1,\"a\n2,\"b\"\n3,c\n";
    assert_eq!(texts(stray, 100), ["1,\"a", "2,\"b\"", "3,c"], "the next quote closes where no field ends");
    let rest: String = (0..200).map(|n| format!("{n},x\n")).collect();
    let endless = format!("1,\"a\n{rest}");
    let found = texts(endless.as_bytes(), 300);
    assert_eq!((found.len(), found[0].as_str(), found[1].as_str()), (201, "1,\"a", "0,x"), "given up after maxLine");
    let (found, lines) = all(&mut file_of(&[b"1,2\n3,\"a\n4,b\n"]), CSV, 1000);
    assert_eq!((found.len(), lines.tail(), lines.offset()), (1, Tail::OpenQuote, 4), "it may still close");
    assert_eq!(lines.line_number(), Some(2));
}

/// Goal: what a CSV file ends with is told apart. Method: each sort of ending.
#[test]
fn the_end_of_a_csv_file_is_whole_or_in_quotes() {
    for (content, expected) in [
        ("1,2\n", Tail::Nothing),
        ("1,2\n\r", Tail::Nothing),
        ("1,2", Tail::Whole),
        ("1,\"2\"", Tail::Whole),
        ("1,\"2\"\r", Tail::Whole),
        ("1,\"2", Tail::Unfinished),
        ("1,\"2\"\"", Tail::Unfinished),
        ("1,\"2\n3", Tail::OpenQuote),
        ("\t", Tail::Whole),
    ] {
        let (_, lines) = all(&mut file_of(&[content.as_bytes()]), CSV, 100);
        assert_eq!(lines.tail(), expected, "{content:?}");
    }
}

/// Goal: a byte order mark is no content, in either format. Method: before a line, a quote, a blank line, at the end.
#[test]
fn a_byte_order_mark_is_passed() {
    assert_eq!(
        all_lines(file_of(&[b"\xef\xbb\xbf{}\n\xef\xbb\xbf[]\n"]), 100)[..],
        [(0, b"{}".to_vec()), (6, b"\xef\xbb\xbf[]".to_vec())]
    );
    assert_eq!(texts(b"\xef\xbb\xbf\"a\nb\",c\n1,2\n", 100), ["\"a\nb\",c", "1,2"]);
    assert_eq!(texts(b"\xef\xbb\xbf\r\n1,2\n", 100), ["1,2"]);
    let (_, lines) = all(&mut file_of(&[b"\xef\xbb\xbf{\"a\""]), Cut::Lines, 100);
    assert_eq!(lines.tail(), Tail::Unfinished);
}

/// Goal: letters name the line. Method: records over several lines, long ones, blank ones.
#[test]
fn lines_are_counted_over_all_that_was_passed() {
    let mut file = file_of(&[b"a\n\n\"b\nb\"\nccccccccccccccccccc\nd\n"]);
    let mut lines = Lines::new(0, CSV, 10, Seam::LineStart);
    let mut numbers = Vec::new();
    loop {
        match lines.next(&mut file, &mut { PLENTY }).expect("readable") {
            Found::Line => {
                numbers.push(lines.line_number());
                lines.pass();
            }
            Found::Long(long) => numbers.push(long.line),
            Found::End => break,
            other @ (Found::Continued | Found::Pause | Found::Later) => panic!("{other:?}"),
        }
    }
    assert_eq!(numbers, [1, 3, 5, 6].map(Some));
}

proptest::proptest! {
    /// Goal: whatever is in a file comes out, all of it. Method: any CSV-like bytes; the records and the tail are the file.
    #[test]
    fn nothing_in_a_file_is_swallowed(content in "[a\",\n]{0,60}", max_line in 4_usize..40) {
        let mut lines = Lines::new(0, CSV, max_line, Seam::LineStart);
        let (mut feed, mut seen) = (file_of(&[content.as_bytes()]), String::new());
        loop {
            match lines.next(&mut feed, &mut { PLENTY }).expect("readable") {
                Found::Line => {
                    seen.push_str(std::str::from_utf8(lines.line()).expect("text"));
                    lines.pass();
                }
                Found::Long(long) => seen.push_str(std::str::from_utf8(&long.head).expect("text")),
                Found::End if lines.tail() == Tail::OpenQuote => lines.ignore_quotes(),
                Found::End => break,
                Found::Continued | Found::Pause | Found::Later => unreachable!(),
            }
        }
        if lines.tail() != Tail::Nothing {
            match lines.take_tail() {
                Found::Long(long) => seen.push_str(std::str::from_utf8(&long.head).expect("text")),
                Found::Line | Found::Continued | Found::Pause | Found::Later | Found::End => seen.push_str(std::str::from_utf8(lines.line()).expect("text")),
            }
        }
        let plain = |text: &str| text.replace('\n', "");
        proptest::prop_assert_eq!(plain(&seen), plain(&content));
    }
}
