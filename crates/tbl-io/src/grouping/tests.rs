use super::*;

/// `|` stands for the end of an archive.
fn group(paths: &[&str]) -> (Names, Grouping) {
    let mut names = Names::new();
    let mut archive_starts = Vec::new();
    for path in paths {
        match *path {
            "|" => archive_starts.push(u32::try_from(names.len()).unwrap()),
            path => names.push(path.as_bytes()).unwrap(),
        }
    }
    let grouping = Grouping::new(&names, &archive_starts);
    (names, grouping)
}

/// Each sample with its fields, separated by blanks.
fn samples(paths: &[&str]) -> Vec<String> {
    let (names, grouping) = group(paths);
    let text = |file| String::from_utf8(names.path(file).into_owned()).unwrap();
    (0..grouping.sample_count() as u64)
        .map(|index| {
            let sample = text(grouping.sample(index).unwrap());
            std::iter::once(sample)
                .chain(grouping.fields(index).map(text))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect()
}

fn check(paths: &[&str], expected: &[&str]) {
    assert_eq!(samples(paths), expected);
}

#[test]
fn a_group_with_an_image_is_one_sample() {
    check(&["a.cls", "a.jpg", "a.seg.png", "b.JPEG"], &["a.jpg a.cls a.seg.png", "b.JPEG"]);
}

#[test]
fn groups_form_across_the_whole_archive() {
    check(
        &["x/a.jpg", "x/b.jpg", "y/a.cls", "x/b.cls", "x/a.cls"],
        &["x/a.jpg x/a.cls", "x/b.jpg x/b.cls"],
    );
}

#[test]
fn a_group_with_several_images_is_one_sample() {
    let several = |paths: &[&str]| group(paths).1.several_images().samples;
    check(&["a.json", "a.png", "a.jpg"], &["a.jpg a.json a.png"]);
    assert_eq!(several(&["a.json", "a.png", "a.jpg", "b.jpg", "b.seg.png"]), 1);
    assert_eq!(several(&["a.jpg", "a.1.jpg", "a.2.JPEG", "b.jpg"]), 1);
    check(&["a.bmp", "a.JPEG", "a.seg.png"], &["a.JPEG a.bmp a.seg.png"]);
    let stereo = ["a.right.jpg", "a.left.jpg", "a.cls", "a.json"];
    check(&stereo, &["a.left.jpg a.right.jpg a.cls a.json"]);
    assert_eq!(several(&stereo), 1);
    check(&["a.input.jpg", "a.target.png"], &["a.input.jpg a.target.png"]);
    check(&["a.target.jpg", "a.input.png"], &["a.input.png a.target.jpg"]);
    check(&["a.b.jpg", "a.cls"], &["a.b.jpg a.cls"]);
    assert_eq!(several(&["a.b.jpg", "a.cls"]), 0);
}

#[test]
fn numbered_images_are_samples_of_their_own() {
    check(&["cat.0.jpg", "cat.1.jpg", "dog.0.jpg"], &["cat.0.jpg", "cat.1.jpg", "dog.0.jpg"]);
    check(
        &["cat.0.jpg", "cat.1.cls", "cat.1.jpg", "cat.0.cls", "cat.1.seg.png"],
        &["cat.0.jpg cat.0.cls", "cat.1.jpg cat.1.cls cat.1.seg.png"],
    );
    let dates = ["IMG.2020.01.02.jpeg", "IMG.2020.01.03.jpeg", "IMG.2021.jpeg"];
    check(&dates, &dates);
    check(
        &["x_jpg.rf.0a1.jpg", "x_jpg.rf.0a1.xml", "x_jpg.rf.f2b.jpg", "x_jpg.rf.f2b.xml"],
        &["x_jpg.rf.0a1.jpg x_jpg.rf.0a1.xml", "x_jpg.rf.f2b.jpg x_jpg.rf.f2b.xml"],
    );
}

#[test]
fn a_file_of_the_whole_group_makes_numbered_images_one_sample() {
    check(&["a.1.jpg", "a.0.jpg", "a.json"], &["a.0.jpg a.1.jpg a.json"]);
    check(&["a.0.jpg", "a.jpg", "a.1.jpg"], &["a.jpg a.0.jpg a.1.jpg"]);
    check(&["a.0.jpg", "a.main.jpg"], &["a.0.jpg a.main.jpg"]);
    check(&["a.0.jpg", "a.0.cls", "a.1.cls"], &["a.0.jpg a.0.cls a.1.cls"]);
}

#[test]
fn groups_do_not_depend_on_the_order_of_files() {
    let mut paths = [
        "cat.0.jpg",
        "cat.1.jpg",
        "cat.1.cls",
        "a.left.png",
        "a.right.png",
        "b.0.1.jpg",
        "b.0.2.jpg",
        "b.1.jpg",
        "c.jpg",
        "c.png",
        "c.bmp",
        "d.json",
        "d.cls",
        "e.json",
        "c.json",
        "c.cls",
    ];
    let expected = [
        "a.left.png a.right.png",
        "b.0.1.jpg",
        "b.0.2.jpg",
        "b.1.jpg",
        "c.jpg c.bmp c.cls c.json c.png",
        "cat.0.jpg",
        "cat.1.jpg cat.1.cls",
        "d.json d.cls",
    ];
    for rotation in 0..paths.len() {
        paths.rotate_left(rotation);
        let mut found: Vec<String> = samples(&paths);
        found.sort_unstable();
        let sorted = found.iter().map(|sample| {
            let (image, fields) = sample.split_once(' ').unwrap_or((sample, ""));
            let mut fields: Vec<&str> =
                fields.split(' ').filter(|field| !field.is_empty()).collect();
            fields.sort_unstable();
            [&[image], &*fields].concat().join(" ")
        });
        assert_eq!(sorted.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn a_repeated_name_starts_a_new_group() {
    let check_twice = |shard: &[&str], expected: &[&str]| {
        let expected = [expected, expected].concat();
        check(&[shard, &["|"], shard].concat(), &expected);
        check(&[shard, shard].concat(), &expected);
        check(&[shard, &["z.jpg"], shard].concat(), &{
            let (first, second) = expected.split_at(expected.len() / 2);
            [first, &["z.jpg"], second].concat()
        });
    };
    check_twice(&["a.jpg", "a.cls"], &["a.jpg a.cls"]);
    check_twice(&["a.cls", "a.jpg"], &["a.jpg a.cls"]);
    check_twice(&["a.jpg", "a.cls", "b.jpg", "b.cls"], &["a.jpg a.cls", "b.jpg b.cls"]);
    check_twice(&["a.jpg", "b.jpg", "a.cls", "b.cls"], &["a.jpg a.cls", "b.jpg b.cls"]);
    check_twice(&["a.cls", "b.cls", "a.jpg", "b.jpg"], &["a.jpg a.cls", "b.jpg b.cls"]);
    check_twice(&["a.jpg", "a.json", "a.png"], &["a.jpg a.json a.png"]);
    check_twice(&["a.right.jpg", "a.left.jpg"], &["a.left.jpg a.right.jpg"]);
    check_twice(&["a.0.jpg", "a.1.jpg"], &["a.0.jpg", "a.1.jpg"]);
    let texts = ["a.txt", "a.cls"];
    check(&[&texts[..], &["|"], &texts].concat(), &["a.txt a.cls", "a.txt a.cls"]);
    check(&["a.cls", "a.txt", "b.txt", "a.txt"], &["a.txt a.cls", "b.txt", "a.txt"]);
}

#[test]
fn a_run_stays_together_when_it_repeats_a_name() {
    check(&["a.cls", "a.jpg", "|", "a.json", "a.jpg"], &["a.jpg a.cls", "a.jpg a.json"]);
    check(&["a.jpg", "a.cls", "b.jpg", "a.jpg"], &["a.jpg a.cls", "b.jpg", "a.jpg"]);
    check(&["a.jpg", "a.cls", "|", "a.json"], &["a.jpg a.cls a.json"]);
}

#[test]
fn repeated_fields_alone_are_updates() {
    check(&["a.jpg", "a.cls", "a.cls"], &["a.jpg a.cls a.cls"]);
    check(&["a.cls", "a.cls", "a.jpg"], &["a.jpg a.cls a.cls"]);
    check(&["a.jpg", "a.seg.png", "|", "a.seg.png"], &["a.jpg a.seg.png a.seg.png"]);
    check(
        &["a.jpg", "a.cls", "b.jpg", "a.cls", "b.cls", "a.cls"],
        &["a.jpg a.cls a.cls a.cls", "b.jpg b.cls"],
    );
}

#[test]
fn a_long_run_is_searched_for_repeated_names() {
    let fields: Vec<String> = (0..40).map(|number| format!("a.{number}")).collect();
    let shard: Vec<&str> =
        std::iter::once("a.jpg").chain(fields.iter().map(String::as_str)).collect();
    let sample = shard.join(" ");
    check(&[&shard[..], &shard].concat(), &[&sample, &sample]);
}

#[test]
fn without_any_image_each_group_is_a_sample() {
    check(&["0.cls", "0.txt", "1.txt", "1.cls"], &["0.txt 0.cls", "1.txt 1.cls"]);
    check(&["0.txt", "0.flac", "1.cls", "1.npy"], &["0.flac 0.txt", "1.npy 1.cls"]);
    check(&["0.cls", "0.json", "0.txt"], &["0.txt 0.cls 0.json"]);
    check(&["x", "x.txt", "", "x.", "x.."], &["x", "x.txt", "", "x.", "x.."]);
}

#[test]
fn other_files_among_images_are_passed_over() {
    let check_passed_over = |paths: &[&str], hidden: u64, other: u64, first: &str| {
        let (names, grouping) = group(paths);
        let found = grouping.passed_over();
        assert_eq!((found.hidden, found.other), (hidden, other), "{paths:?}");
        assert_eq!(names.path(found.first.unwrap()), first.as_bytes());
    };
    let paths = ["README.md", "a.jpg", "LICENSE", "a", "a.txt", "README.txt", "t.csv", "t.json"];
    check(&paths, &["a.jpg a.txt"]);
    check_passed_over(&paths, 0, 6, "README.md");
    // A sample whose image is missing has the fields of the others.
    check(&["a.jpg", "a.txt", "a.CLS", "b.txt", "b.cls"], &["a.jpg a.txt a.CLS", "b.txt b.cls"]);
    check(&["a.jpg", "a.txt", "b.txt", "b.xml"], &["a.jpg a.txt"]);
}

#[test]
fn without_any_image_videos_are_the_samples() {
    let clips = ["a.flac", "a.json", "a.mp4", "b.MKV", "notes.txt"];
    check(&clips, &["a.mp4 a.flac a.json", "b.MKV"]);
    check(&["a.jpg", "a.mp4", "b.mp4"], &["a.jpg a.mp4"]);
}

#[test]
fn groups_without_an_image_that_may_be_samples_are_counted() {
    let check_found = |paths: &[&str], groups: u64, files: u64, first: Option<u32>| {
        let found = group(paths).1.without_image();
        assert_eq!(found, WithoutImage { groups, files, first }, "{paths:?}");
    };
    check_found(&["README.md", "a.jpg", "LICENSE", "a", "a.cls"], 0, 0, None);
    check_found(&["a.jpg", "a.txt", "b.TXT", "c.md", "README.txt"], 2, 2, Some(2));
    check_found(&["t.csv", "a.jpg", "a.txt", "t.json", "b.txt", "b.xml"], 2, 4, Some(0));
    check_found(&["a.0.jpg", "a.1.jpg", "a.2.txt", "b.xml"], 1, 1, Some(2));
    // These are samples.
    check_found(&["a.jpg", "a.txt", "a.cls", "b.txt", "b.cls"], 0, 0, None);
    check_found(&["0.txt", "1.cls"], 0, 0, None);
}

#[test]
fn numbered_images_that_another_file_joins_are_counted() {
    let check_joined = |paths: &[&str], images: u64, samples: u64, because: Option<u32>| {
        let found = group(paths).1.joined_images();
        assert_eq!(found, JoinedImages { images, samples, because }, "{paths:?}");
    };
    check_joined(&["x.0.jpg", "x.0.cls", "x.1.jpg", "x.1.cls"], 0, 0, None);
    check_joined(&["x.0.jpg", "x.0.cls", "x.1.jpg", "x.1.cls", "x.json"], 2, 1, Some(4));
    check_joined(&["x.0.jpg", "x.1.jpg", "x.2.jpg", "x.mask.png"], 3, 1, Some(3));
    check_joined(&["x.0.jpg", "x.cls", "y.0.jpg", "y.1.jpg", "y.cls"], 2, 1, Some(4));
    // Next to an image with nothing but a format, they are its masks or variants.
    check_joined(&["x.jpg", "x.mask0.png", "x.mask1.png", "x.json"], 0, 0, None);
    check_joined(&["x.left.jpg", "x.right.jpg", "x.json"], 0, 0, None);
    let nested = ["d.2.0.jpg", "d.2.1.jpg", "d.2.json", "d.1.jpg", "d.3.jpg"];
    check(&nested, &["d.2.0.jpg d.2.1.jpg d.2.json", "d.1.jpg", "d.3.jpg"]);
    check_joined(&nested, 2, 1, Some(2));
}

#[test]
fn members_that_later_ones_replace_are_listed() {
    let check_replaced = |paths: &[&str], expected: &[(u32, u32)]| {
        assert_eq!(group(paths).1.replaced(), expected, "{paths:?}");
    };
    check_replaced(&["a.jpg", "a.cls", "b.cls", "b.jpg"], &[]);
    check_replaced(&["a.jpg", "a.cls", "a.cls", "a.cls"], &[(1, 2), (2, 3)]);
    check_replaced(&["a.cls", "a.cls", "a.jpg"], &[(0, 1)]);
    check_replaced(&["a.jpg", "a.cls", "b.jpg", "|", "a.cls"], &[(1, 3)]);
    check_replaced(&["a.0.jpg", "a.1.jpg", "a.0.cls", "a.0.cls"], &[(2, 3)]);
    // Separate samples.
    check_replaced(&["a.jpg", "a.cls", "a.jpg", "a.cls"], &[]);
    check_replaced(&["a.txt", "a.txt"], &[]);
}

#[test]
fn hidden_files_are_passed_over() {
    let paths = [
        "x/._a.jpg",
        "x/a.jpg",
        "x/.a.cls",
        ".DS_Store",
        "__MACOSX/x/a.jpg",
        "x/.git/b.jpg",
        "Thumbs.db",
        "./../b.jpg",
        "desktop.ini",
        "x/a.cls",
    ];
    check(&paths, &["x/a.jpg x/a.cls", "./../b.jpg"]);
    assert_eq!(group(&paths).1.passed_over(), PassedOver { hidden: 7, other: 0, first: Some(0) });
    check(&[".a", "._0.txt"], &[]);
}

#[test]
fn keys_end_before_the_first_dot() {
    assert_eq!(split_base(b".a.seg.png"), (&b".a"[..], &b"seg.png"[..]));
    assert_eq!(split_base(b"a."), (&b"a."[..], &b""[..]));
    assert_eq!(split_base(b"a..."), (&b"a..."[..], &b""[..]));
    assert_eq!(split_base(b"a..jpg"), (&b"a"[..], &b".jpg"[..]));
}

#[test]
fn labels_of_numbered_images_have_their_number() {
    let label_of = |paths: &[&str]| {
        let (names, grouping) = group(paths);
        let text = |file| String::from_utf8(names.path(file).into_owned()).unwrap();
        let fields = grouping.label_fields(&names, 0).map(|(_, file)| text(file));
        fields.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(label_of(&["a.jpg", "a.cls", "a.json", "a.txt"]), "a.cls a.json");
    assert_eq!(label_of(&["a.0.jpg", "a.0.cls", "a.1.jpg", "a.1.cls"]), "a.0.cls");
    assert_eq!(label_of(&["a.0.jpg", "a.0.cls", "a.0.json"]), "a.0.cls a.0.json");
    assert_eq!(label_of(&["a.0.jpg", "a.0.cls", "a.1.jpg", "a.json"]), "a.json");
    assert_eq!(label_of(&["a.left.jpg", "a.left.cls", "a.right.jpg"]), "");
    assert_eq!(label_of(&["a.cls"]), "a.cls");
    assert_eq!(label_of(&["a.cls", "a.json"]), "a.json a.cls");
}

#[test]
fn names_of_nothing_but_dots_and_digits_are_taken_apart_in_time() {
    let parts = "0.".repeat(200_000);
    let [first, second] = ["a", "b"].map(|end| format!("{parts}{end}1.jpg"));
    let third = format!("{parts}a1.jpg.jpg");
    assert_eq!(samples(&[&first, &second, &third]).len(), 2);
}

#[test]
fn many_groups_far_apart_are_found_again() {
    let images = (0..3000).map(|number| format!("{number}.jpg"));
    let classes = (0..3000).rev().map(|number| format!("{number}.cls"));
    let paths: Vec<String> = images.chain(classes).collect();
    let (names, grouping) = group(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(grouping.sample_count(), 3000);
    for index in 0..3000 {
        let fields: Vec<u32> = grouping.fields(index).collect();
        assert_eq!(fields.len(), 1);
        assert_eq!(names.base(fields[0]), format!("{index}.cls").as_bytes());
    }
}

#[test]
fn a_base_name_is_joined_from_its_parts() {
    for base in ["a", "a.", "a..", ".a", ".", "a.b", "a.b.c", "a..b", ".a.b", ""] {
        let (group, extension) = split_base(base.as_bytes());
        assert_eq!(join_base(group, extension), base.as_bytes());
    }
}

#[test]
fn the_last_field_of_an_extension_stays() {
    let field = |extension: usize, version: u8| Field {
        extension: extension.to_string().into(),
        bytes: vec![version],
    };
    let mut fields = vec![field(0, 9)];
    let mut set = FieldSet::new(&mut fields);
    for version in [1, 2] {
        (0..100).for_each(|extension| set.push(field(extension, version)));
    }
    let expected = (0..100).map(|extension| field(extension, 2));
    assert_eq!(fields, std::iter::once(field(0, 9)).chain(expected).collect::<Vec<_>>());
}
