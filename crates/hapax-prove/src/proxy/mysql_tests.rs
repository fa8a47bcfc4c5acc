use super::*;

/// Goal: a prepared statement is known when it runs, not before. Method: prepare, the server's answer, execute.
#[test]
fn a_prepared_statement_is_known_when_it_runs() {
    let mut talk = Talk::default();
    assert_eq!(talk.run_by(&Packet::new(0, b"\x16INSERT INTO `hapax_epochs` VALUES (?)")), None);
    let execute = Packet::new(0, b"\x17\x05\0\0\0\0\x01\0\0\0");
    assert_eq!(talk.run_by(&execute), None, "its number is not known yet");
    talk.learn(&Packet::new(1, b"\0\x05\0\0\0\0\0\x01\0\0\0\0"));
    assert_eq!(talk.run_by(&execute), Some("insert into hapax_epochs values (?)".to_owned()));
    assert_eq!(talk.run_by(&Packet::new(0, b"\x03COMMIT")), Some("commit".to_owned()));
    assert_eq!(talk.run_by(&Packet::new(3, b"\x03COMMIT")), None, "a later part of a question");
    assert_eq!(talk.run_by(&Packet::new(0, b"\x17\x05")), None);
    talk.run_by(&Packet::new(0, b"\x16nonsense"));
    talk.learn(&Packet::new(1, b"\xff\x28\x04"));
    assert_eq!(talk.prepared.len(), 1, "what was refused has no number");
}

/// Goal: packets pass unchanged, and cut ones do not bring the proxy down. Method: whole and cut.
#[test]
fn packets_are_read_or_refused() {
    let whole = Packet::new(0, b"\x03COMMIT");
    assert_eq!(Packet::read(&mut whole.bytes.as_slice()).expect("it is whole"), whole);
    for cut in 0..whole.bytes.len() {
        assert!(Packet::read(&mut &whole.bytes[..cut]).is_err());
    }
    assert_eq!(Packet::new(0, b"").command(), None);
}
