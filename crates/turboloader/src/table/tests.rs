//! Conversions, their errors and their end.

use std::fs;

use super::*;

/// Converts without a care for progress.
fn run(
    conversion: &TableConversion,
    from: &Path,
    to: &Path,
) -> Result<TableSummary, TableConversionError> {
    conversion.run(from, to, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn tables_are_converted_and_errors_have_their_kind() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("a.csv"), "x,y\n1,a\n2,b\n").unwrap();
    let conversion = TableConversion { columns: vec!["x".into()], ..Default::default() };
    let summary = run(&conversion, &path("a.csv"), &path("a.idv")).unwrap();
    assert_eq!(summary.rows, 2);
    assert_eq!(summary.file_bytes, path("a.idv").metadata().unwrap().len());
    let back = run(&TableConversion::default(), &path("a.idv"), &path("b.csv"));
    assert_eq!(back.unwrap().rows, 2);
    assert_eq!(fs::read_to_string(path("b.csv")).unwrap(), "x\r\n1\r\n2\r\n");
    let missing = run(&conversion, &path("none.csv"), &path("c.idv")).unwrap_err();
    assert!(missing.io_error().is_some() && !missing.is_damage(), "{missing}");
    let exists = run(&conversion, &path("a.csv"), &path("a.idv")).unwrap_err();
    assert_eq!(exists.io_error().map(io::Error::kind), Some(io::ErrorKind::AlreadyExists));
    assert_eq!(exists.location().path(), Some(&*path("a.idv")));
    let cut = &fs::read(path("a.idv")).unwrap()[..100];
    fs::write(path("cut.idv"), cut).unwrap();
    let damaged = run(&conversion, &path("cut.idv"), &path("c.csv")).unwrap_err();
    assert!(damaged.is_damage() && !path("c.csv").exists(), "{damaged}");
    for (from, to) in [("a.idv", "a.tbl"), ("b.csv", "b.parquet")] {
        let refused = run(&TableConversion::default(), &path(from), &path(to)).unwrap_err();
        assert!(!refused.is_damage() && refused.io_error().is_none(), "{refused}");
    }
}

#[test]
fn whoever_hears_of_progress_can_end_it_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let rows: String = (0..20_000).map(|row| format!("{row},text {row}\n")).collect();
    fs::write(path("a.csv"), format!("x,y\n{rows}")).unwrap();
    let conversion = TableConversion::default();
    assert_eq!(run(&conversion, &path("a.csv"), &path("a.idv")).unwrap().rows, 20_000);
    for (from, to) in [("a.csv", "b.idv"), ("a.idv", "b.csv"), ("a.idv", "b.idv")] {
        let mut heard = Vec::new();
        let end = conversion.run(&path(from), &path(to), &mut |event| {
            let TableEvent::Progress { done, total } = event else { panic!("{event:?}") };
            heard.push((done, total));
            ControlFlow::Break(())
        });
        let error = end.unwrap_err();
        assert!(error.to_string().ends_with("stopped") && !error.is_damage(), "{error}");
        let &[(done, total)] = heard.as_slice() else { panic!("{heard:?}") };
        assert!(0 < done && done <= total, "{done} of {total}");
        assert!(!path(to).exists());
    }
}
