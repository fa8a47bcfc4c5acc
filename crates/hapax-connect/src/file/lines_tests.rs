use std::io::Write as _;

use super::*;

const PLENTY: usize = 1000;

fn file_of(parts: &[&[u8]]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    for part in parts {
        file.write_all(part).expect("it takes bytes");
    }
    file
}

fn all_lines(file: &File, max_line: usize) -> Vec<(u64, Vec<u8>)> {
    let mut lines = Lines::new(0, max_line, Seam::LineStart);
    let mut found = Vec::new();
    loop {
        match lines.next(file, &mut { PLENTY }).expect("the file is readable") {
            Found::Line => {
                found.push((lines.offset(), lines.line().to_vec()));
                lines.pass();
            }
            Found::Long(long) => found.push((long.start, long.sha256.to_vec())),
            Found::End => return found,
            other @ (Found::Continued | Found::Pause) => panic!("{other:?}"),
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
    assert_eq!(all_lines(&file_of(&[&content]), 16 * 1024 * 1024), expected);
}

/// Goal: line ends of both kinds and blank lines are no content. Method: a file with all of them.
#[test]
fn carriage_returns_and_blank_lines_are_passed() {
    let file = file_of(&[b"\r\n  \n{}\r\n\n\t\n[]\n\r\n"]);
    assert_eq!(all_lines(&file, 100), [(5, b"{}".to_vec()), (12, b"[]".to_vec())]);
}

/// Goal: `max_line` counts the line without its newline. Method: one byte around it, within one block.
#[test]
fn a_line_of_exactly_the_limit_is_a_line() {
    let file = file_of(&[b"12345\n123456\n1\n"]);
    let long: [u8; 32] = Sha256::digest(b"123456").into();
    assert_eq!(all_lines(&file, 5), [(0, b"12345".to_vec()), (6, long.to_vec()), (13, b"1".to_vec())]);
}

/// Goal: a line of any length costs no memory. Method: 24 MiB against a limit of 1 MiB; look at the buffer on the way.
#[test]
fn a_long_line_is_hashed_and_not_held() {
    let long = vec![b'x'; 24 * 1024 * 1024];
    let file = file_of(&[b"{}\n", &long, b"\n[]\n"]);
    let mut lines = Lines::new(3, 1024 * 1024, Seam::LineStart);
    let found = loop {
        assert!(lines.block.capacity() < 4 * 1024 * 1024, "{}", lines.block.capacity());
        assert_eq!(lines.offset(), 3, "the place stays before the line until it is complete");
        match lines.next(&file, &mut 1).expect("the file is readable") {
            Found::Long(found) => break found,
            Found::Pause => {}
            other @ (Found::Line | Found::End | Found::Continued) => panic!("{other:?}"),
        }
    };
    assert_eq!((found.start, found.length, found.head.len()), (3, long.len() as u64, LETTER_HEAD_BYTES));
    assert_eq!(found.sha256, <[u8; 32]>::from(Sha256::digest(&long)));
    assert!(matches!(lines.next(&file, &mut { PLENTY }), Ok(Found::Line)));
    assert_eq!((lines.offset(), lines.line()), (3 + long.len() as u64 + 1, &b"[]"[..]));
}

/// Goal: memory of one large line is given back. Method: a line of many blocks, then small ones.
#[test]
fn the_buffer_shrinks_after_a_large_line() {
    let file = file_of(&[&vec![b'x'; 40 * BLOCK], b"\n", &vec![b'\n'; 3 * BLOCK]]);
    let mut lines = Lines::new(0, 64 * BLOCK, Seam::LineStart);
    assert!(matches!(lines.next(&file, &mut { PLENTY }), Ok(Found::Line)));
    lines.pass();
    assert!(matches!(lines.next(&file, &mut { PLENTY }), Ok(Found::End)));
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
        let file = file_of(&[b"{}\n", tail]);
        let mut lines = Lines::new(3, 100, Seam::LineStart);
        assert!(matches!(lines.next(&file, &mut { PLENTY }), Ok(Found::End)));
        assert_eq!(lines.tail(), expected, "{}", String::from_utf8_lossy(tail));
    }
}
