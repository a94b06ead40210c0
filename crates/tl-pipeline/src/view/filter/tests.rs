//! The language of filters, over a value at a time.

use proptest::prelude::*;

use super::*;

/// The truth of a condition over the files of sample 3 of a small data set, and its error.
fn holds(text: &str) -> Result<bool, String> {
    let root = tempfile::tempdir().unwrap();
    for number in 0..5 {
        let write = |extension: &str, bytes: &[u8]| {
            std::fs::write(root.path().join(format!("a{number}.{extension}")), bytes).unwrap();
        };
        write("jpg", &[0; 100]);
        write("json", br#"{"label": 7, "score": 0.5, "is big": true, "none": null, "list": [1]}"#);
        write("weight", b" 2.50\n");
        write("split", b"train");
    }
    let dataset = Dataset::open(&[root.path()]).unwrap();
    let filter: Filter = text.parse().map_err(|error: FilterError| error.to_string())?;
    filter.check(&dataset).map_err(|error| error.to_string())?;
    let reads = crate::view::meta::Reads::default();
    let sample = SampleMeta::new(&dataset, 3, &reads).unwrap();
    filter.matches(&sample).map_err(|error| error.to_string())
}

#[test]
fn conditions_are_true_of_samples_or_not() {
    for text in [
        "index == 3",
        "index >= 3 and index <= 3",
        "not index < 3 and not index > 3",
        "index in (1, 2, 3)",
        "index not in (1, 2)",
        "key like 'a?.jpg' and key like '*3*' and not key like 'b*'",
        "key not like 'b*'",
        "label == 7 and label != 8",
        "class == none",
        "format == 'jpeg'",
        "bytes == 100 and bytes * 2 + 1 == 201 and bytes / 8 == 12.5",
        "-bytes < -99.5",
        "(index == 1 or index == 3) and true",
        "json:/score == 0.5 and json:/score < 1 and json:/score * 2 == 1",
        r#"json:"/is big""#,
        "json:/none == none and json:/missing == none and json:/none != 0",
        "not json:/missing > 1 and not json:/missing <= 1",
        "json:/list/0 == 1 and json:/list != 1",
        "weight == 2.5 and weight > 2 and weight in (2.5, 3) and weight == '2.50'",
        "split == 'train' and split == \"train\" and split in ('val', 'train',)",
        "split != 5 and not split == 5 and not split < 5",
        r"split == 'tr\ain'",
        "1_000 == 1e3 and 1e-1 == .1",
    ] {
        assert_eq!(holds(text), Ok(true), "{text}");
        assert_eq!(holds(&format!("not ({text})")), Ok(false), "{text}");
    }
}

#[test]
fn a_name_that_is_built_in_and_a_field_is_refused() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..3 {
        let write = |extension: &str, text: String| {
            std::fs::write(root.path().join(format!("a{number}.{extension}")), text).unwrap();
        };
        write("jpg", "image".to_owned());
        write("cls", number.to_string());
        write("label", number.to_string());
        write("width", (number * 100).to_string());
        write("class", "zebra".to_owned());
    }
    let all = crate::view::DatasetView::from(Dataset::open(&[root.path()]).unwrap());
    let select = |text: &str| {
        let view = all.filter(&text.parse().unwrap()).map_err(|error| error.to_string())?;
        Ok::<Vec<u64>, String>(view.indices().unwrap().collect())
    };
    for name in ["width", "class"] {
        let expected = format!(
            "`{name}` in a filter is built in, and sample 0 has a field of that name too: write \
            `field:{name}` for the field, or rename the field to use the built-in `{name}`"
        );
        assert_eq!(select(&format!("index < 1 and {name} != none")), Err(expected));
    }
    assert_eq!(select("field:width >= 100 and field:class == 'zebra'"), Ok(vec![1, 2]));
    assert_eq!(select("bytes == 5 and index > 1 and key like 'a*'"), Ok(vec![2]));
    // The field agrees with the label.
    assert_eq!(select("label == 1"), Ok(vec![1]));
    std::fs::write(root.path().join("a1.label"), "7").unwrap();
    let error = select("label == 1").unwrap_err();
    assert!(error.contains("`label` in a filter is built in, and sample 1 has"), "{error}");
    assert_eq!(select("field:label == 7"), Ok(vec![1]));
    assert!(select("field:height > 1").unwrap_err().contains("`height` in a filter: no sample"));
}

#[test]
fn errors_say_where_and_what() {
    let check = |text: &str, expected: &str| {
        let error = holds(text).unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    };
    check("width => 4", "at byte 6: `=`, expected `==`");
    check("width = 4", "at byte 6: `=`, expected `==`");
    check("width && 4", "at byte 6: `&`, expected `and`");
    check("width", "at byte 0: a number, expected a condition, such as `width >= 224`");
    check("width >= '4'", "at byte 9: text, expected a number");
    check("class == 3", "at byte 9: a number, expected text");
    check("0 < index < 3", "a second comparison, expected two, joined by `and`");
    check("class in ('a', 3)", "at byte 15: a number, expected text");
    check("class in 'a'", "at byte 9: `'a'`, expected `(` and a list");
    check("class like a", "expected a pattern in quotes");
    check("index like 'a'", "expected text before `like`");
    check("", "at byte 0: the end, expected a value");
    check("index == 'a", "text that is not closed");
    check("index == 1x", "`1x`, expected a number");
    check("index == 1 index == 2", "at byte 11: `index`, expected `and`, `or` or the end");
    check("key + 1 == 2", "at byte 0: text, expected a number");
    check("(index == 1", "the end, expected `)`");
    check("split", "sample 3: `split` is \"train\", expected true or false");
    let expected = "`widht` in a filter: no sample has such a file, and a filter knows index, key, \
        label, class, format, bytes, width, height; the files are called: jpg, json";
    check("widht > 3", expected);
    check("split:/a == 1", "sample 3: `split` is not JSON");
    check("width > 3", "sample 3 (a3.jpg)");
    check(&"(".repeat(100), "at most 64 levels");
    check(&"-".repeat(100), "at most 64 levels");
    check(&"not ".repeat(100), "at most 64 levels");
    check(&" ".repeat(70_000), "70000 bytes, expected at most 65536 bytes");
}

#[test]
fn what_a_condition_names_twice_is_read_once() {
    let root = tempfile::tempdir().unwrap();
    let mut bmp = b"BM".to_vec();
    for number in [58_u32, 0, 54, 40, 1, 1, 1 | 24 << 16, 0, 4, 0, 0, 0, 0, 0] {
        bmp.extend(number.to_le_bytes());
    }
    for number in 0..3 {
        std::fs::write(root.path().join(format!("{number}.bmp")), &bmp).unwrap();
        std::fs::write(root.path().join(format!("{number}.json")), r#"{"a": 1, "b": 2}"#).unwrap();
    }
    let all = crate::view::DatasetView::from(Dataset::open(&[root.path()]).unwrap());
    let text = "width == 1 and height == 1 and width * height == 1 and json:/a == 1 and \
        json:/b == 2 and json:/c == none and json != 'x' and caption == none or json:/a == 3";
    let error = all.filter(&text.parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("`caption` in a filter: no sample"), "{error}");
    let text = text.replace("and caption == none ", "");
    let view = all.filter(&text.parse().unwrap()).unwrap();
    assert_eq!(view.len(), 3);
    let cost = view.explain();
    assert!(cost.ends_with("(read 3 image headers and 3 files of samples; 24 bytes)"), "{cost}");
}

/// Texts of 64 KiB are parsed, evaluated and dropped with the stack of a thread.
#[test]
fn the_longest_texts_do_not_exhaust_the_stack() {
    let long = |first: &str, more: &str, last: &str| {
        let count = ((1 << 16) - first.len() - last.len()) / more.len();
        format!("{first}{}{last}", more.repeat(count))
    };
    let sum = 3 + (65_536 - "index==32765".len()) / 2;
    let text = long("index", "+1", &format!("=={sum}"));
    assert!((65_500..=65_536).contains(&text.len()), "{}", text.len());
    for (text, expected) in [
        (text, true),
        (long("index", "-1", "<0"), true),
        (long("index", "*1", "==3"), true),
        (long("index", "/1", "==3"), true),
        (long("index", "*1+0", "==3"), true),
        (long("index>5", " or index==2", " or true"), true),
        (long("index==3", " and true", " and false"), false),
        (long("index in (3", ",4", ")"), true),
        (long("key like '", "*", "'"), true),
    ] {
        assert_eq!(holds(&text), Ok(expected), "{}", &text[..20]);
    }
    for text in [long("", "(", ""), long("", "-", "1"), long("", "not ", "true")] {
        assert!(holds(&text).unwrap_err().contains("at most 64 levels"));
    }
    assert!(holds(&long("index", "+1", "+'a'==1")).unwrap_err().contains("text, expected a"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_a_condition_or_an_error(text in r#"([a-z ]{0,6}|[0-9.eE+-]{1,4}|[()<>=!,*/"'\\:é]|and |or |not |in |like |json:/a){0,12}"#) {
        let at = text.parse::<Filter>().map_or_else(|error| error.at, |_| 0);
        prop_assert!(at <= text.len());
    }

    #[test]
    fn a_pattern_is_matched_as_by_trying_everything(
        text in "[ab]{0,8}",
        pattern in "[ab*?]{0,6}",
    ) {
        fn naive(text: &[u8], pattern: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'*', rest)) => (0..=text.len()).any(|skip| naive(&text[skip..], rest)),
                Some((b'?', rest)) => !text.is_empty() && naive(&text[1..], rest),
                Some((wanted, rest)) => text.first() == Some(wanted) && naive(&text[1..], rest),
            }
        }
        prop_assert_eq!(value::is_like(&text, &pattern), naive(text.as_bytes(), pattern.as_bytes()));
    }
}
