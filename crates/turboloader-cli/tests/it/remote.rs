//! Commands on the URLs of a store, which answer as they do for files.

use std::path::Path;
use std::sync::Arc;

use tl_store_server::{Dialect, Service, Serving, serve};

use crate::support::{Run, command, finished, json_lines, photos, tar, tl, write};

/// A service with the files of a folder in the bucket `b`.
pub(crate) fn service(folder: &Path) -> Arc<Service> {
    let mut service = Service::new(Dialect::S3);
    service.objects.put_folder("b", folder).expect("the folder is readable");
    service.objects.put_folder("photos", &photos()).expect("the folder is readable");
    service.key = Some("dummy".to_owned());
    Arc::new(service)
}

/// A service over sockets, and the arguments of a command that asks it.
pub(crate) struct Store {
    pub(crate) service: Arc<Service>,
    endpoint: String,
    _server: Serving,
}

impl Store {
    pub(crate) fn new(service: Arc<Service>) -> Self {
        let server = serve(Arc::clone(&service), 0).expect("a port is free");
        let endpoint = format!("endpoint={}", server.endpoint());
        Self { service, endpoint, _server: server }
    }

    pub(crate) fn arguments(&self) -> [&str; 6] {
        let keys = ["access_key_id=dummy", "secret_access_key=planted"];
        ["--store", &self.endpoint, "--store", keys[0], "--store", keys[1]]
    }

    /// Runs a command that asks the service.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        tl(args.iter().copied().chain(self.arguments()))
    }
}

#[test]
fn commands_answer_for_urls_as_for_files() {
    let root = tempfile::tempdir().unwrap();
    let photos = photos();
    for (name, kind) in [("a.tbl", "tbl2"), ("a.tar", "tar")] {
        let to = root.path().join(name);
        let args =
            [photos.as_os_str(), "-o".as_ref(), to.as_os_str(), "--to".as_ref(), kind.as_ref()];
        tl(["convert".as_ref(), "--quiet".as_ref()].into_iter().chain(args)).good();
    }
    let store = Store::new(service(root.path()));
    for name in ["a.tbl", "a.tar"] {
        let file = root.path().join(name);
        let file = file.to_str().unwrap();
        let url = format!("s3://b/{name}");
        let commands: [&[&str]; 7] = [
            &["info", "FILE"],
            &["ls", "FILE"],
            &["cat", "FILE", "3"],
            &["digest", "FILE"],
            &["verify", "FILE"],
            &["bench", "FILE", "--digest", "--seconds", "0.1", "--recipe", "raw"],
            &["explain", "imagenet-train", "FILE", "--sample", "2"],
        ];
        for command in commands {
            let with = |path: &str| {
                let args = command.iter().map(|arg| arg.replace("FILE", path));
                let run = tl(args
                    .chain(store.arguments().map(str::to_owned))
                    .chain(["--quiet".to_owned()]));
                let answer = String::from_utf8_lossy(&run.good()).replace(path, "FILE");
                // The lines of `bench` but the digest's are measured.
                let is_same = |line: &&str| command[0] != "bench" || line.starts_with("epoch 0 ");
                answer.lines().filter(is_same).map(str::to_owned).collect::<Vec<_>>()
            };
            let local = with(file);
            assert!(!local.is_empty(), "{command:?} {name}");
            assert_eq!(local, with(&url), "{command:?} {name}");
        }
        for (command, extension) in [("convert", "tbl"), ("preview", "png")] {
            let [local, remote] = [("local", file), ("remote", &url)].map(|(copy, from)| {
                let to = root.path().join(copy).with_extension(extension);
                let args = [command, from, "-o", to.to_str().unwrap(), "--force", "--quiet"];
                tl(args.iter().chain(&store.arguments())).good();
                std::fs::read(to).unwrap()
            });
            assert!(local == remote, "{command} {name}");
        }
    }
    // Small archives are in memory once they are open; files of a folder are requested each time.
    let bench = ["bench", "s3://photos/", "--recipe", "raw", "--seconds", "0.1", "--json"];
    let prices = ["--price-get", "0.5", "--price-gb", "0"];
    let result = json_lines(&tl(bench.iter().chain(&prices).chain(&store.arguments())).text());
    let remote = &result[0]["remote"];
    let of = |name: &str| remote[name].as_f64().unwrap();
    assert!(of("gets") > 0.0 && of("received_bytes") > 0.0 && of("used_bytes") > 0.0, "{remote}");
    let price = of("gets_per_1000_samples") / 2.0;
    assert!((of("price_of_1000_samples") - price).abs() < 0.1, "{remote}");
    let usage = tl(["bench", "s3://b/a.tbl", "--recipe", "raw", "--price-gb", "nan"]).error(2);
    assert!(usage.contains("expected a number, 0 or more"), "{usage}");
    let refused = tl(["info", "s3://b/a.tbl", "--store", "acess_key_id=planted"]).error(2);
    assert!(refused.contains("unknown option \"acess_key_id\" for S3"), "{refused}");
    assert!(!refused.contains("planted"), "{refused}");
    let usage = tl(["info", "s3://b/a.tbl", "--store", "planted"]).error(2);
    assert!(usage.contains("expected KEY=VALUE"), "{usage}");
}

#[test]
fn a_profile_of_the_aws_tools_has_keys_and_an_endpoint() {
    let root = tempfile::tempdir().unwrap();
    let server = serve(service(root.path()), 0).unwrap();
    let config = root.path().join("config");
    let endpoint = server.endpoint();
    let text =
        format!("[profile lab]\nendpoint_url = {endpoint}\n[profile corp]\nsso_session = a\n");
    std::fs::write(&config, text).unwrap();
    let credentials = root.path().join("credentials");
    let keys = "[lab]\naws_access_key_id = dummy\naws_secret_access_key = planted\n";
    std::fs::write(&credentials, keys).unwrap();
    let info = |profile: &str, store: &[&str]| {
        let mut command = command(["info", "s3://photos/"].iter().chain(store));
        command.env("AWS_CONFIG_FILE", &config).env("AWS_SHARED_CREDENTIALS_FILE", &credentials);
        for name in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"] {
            command.env_remove(name);
        }
        finished(command.env("AWS_PROFILE", profile).output().unwrap())
    };
    assert_eq!(info("lab", &[]).code, Some(0));
    let refused = info("corp", &[]).error(2);
    assert!(refused.contains("the profile \"corp\" has sso_session, which is not"), "{refused}");
    let unknown = info("other", &[]).error(2);
    assert!(unknown.contains("unknown profile \"other\""), "{unknown}");
    // Keys of options, and none at all, need no profile.
    let endpoint = format!("endpoint={endpoint}");
    let keys = ["access_key_id=dummy", "secret_access_key=x", &endpoint];
    let keys = keys.map(|key| ["--store", key]).concat();
    assert_eq!(info("other", &keys).code, Some(0));
    // An option is stronger than any variable.
    let mut with_variable = command(["info", "s3://photos/"].iter().chain(&keys));
    with_variable.env("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9");
    assert_eq!(finished(with_variable.output().unwrap()).code, Some(0));
    let anonymous = ["--store", "anonymous=true", "--store", &endpoint];
    assert!(info("other", &anonymous).error(2).contains("status 403 AccessDenied"));
}

#[test]
fn an_archive_is_opened_with_few_requests() {
    let root = tempfile::tempdir().unwrap();
    let archive = root.path().join("a.tar");
    let photos = tempfile::tempdir().unwrap();
    // More than comes when an object is opened.
    for copy in 0..9 {
        for class in ["animals", "food"] {
            let folder = photos.path().join(format!("{class}{copy}"));
            std::fs::create_dir(&folder).unwrap();
            for photo in std::fs::read_dir(self::photos().join(class)).unwrap() {
                let photo = photo.unwrap();
                std::fs::copy(photo.path(), folder.join(photo.file_name())).unwrap();
            }
        }
    }
    let photos = photos.path();
    let args = ["convert".as_ref(), photos.as_os_str(), "-o".as_ref(), archive.as_os_str()];
    tl(args.into_iter().chain(["--to", "tar", "--quiet"].map(AsRef::as_ref))).good();
    let store = Store::new(service(root.path()));
    store.run(&["ls", "s3://b/a.tar"]).good();
    let counts = store.service.counts();
    assert!(counts.gets <= 4, "{counts:?}");
    // The command looks at the first bytes before it opens the archive; no others come twice.
    let first = 1 << 20;
    let bytes = std::fs::metadata(&archive).unwrap().len();
    assert!(bytes > first && counts.bytes <= bytes + first, "{counts:?} for {bytes} bytes");
}

#[test]
fn a_folder_that_is_listed_without_versions_has_its_files() {
    let photos = photos();
    let mut service = Service::new(Dialect::S3);
    service.objects.put_folder("photos", &photos).unwrap();
    service.lists_versions = false;
    let store = Store::new(Arc::new(service));
    let doctor = ["doctor", "s3://photos/", "--seconds", "1", "--recipe", "raw", "--json"];
    let text = store.run(&doctor[..doctor.len() - 1]).text();
    assert!(text.contains("\nreads     ") && !text.contains("page cache"), "{text}");
    let found = &json_lines(&store.run(&doctor).text())[0]["store"];
    let of = |name: &str| found[name].as_f64().unwrap();
    assert!(of("gets_per_1000_samples") > 0.0 && of("connections") > 0.0, "{found}");
    assert!(of("first_byte_ms") > 0.0 && of("throttled") == 0.0, "{found}");
    let before = store.service.counts().gets;
    let local = tl(["digest", photos.to_str().unwrap()]).text();
    assert_eq!(store.run(&["digest", "s3://photos/"]).text(), local);
    let files = crate::support::files_below(&photos).len() as u64;
    let gets = store.service.counts().gets - before;
    assert!(gets <= files, "{gets} requests for {files} files");
}

#[test]
fn an_index_of_the_hub_outlives_the_commit_that_adds_it() {
    let root = tempfile::tempdir().unwrap();
    let photos = photos();
    let tar = root.path().join("a.tar");
    let (from, to) = (photos.to_str().unwrap(), tar.to_str().unwrap());
    tl(["convert", from, "-o", to, "--to", "tar", "--quiet"]).good();
    let index = root.path().join("a.tlidx");
    let run = |args: &[&str]| {
        let mut service = Service::new(Dialect::Hub);
        service.objects.put_folder("b", root.path()).unwrap();
        if index.exists() {
            service.commit = "f".repeat(40);
        }
        let server = serve(Arc::new(service), 0).unwrap();
        let endpoint = format!("endpoint={}", server.endpoint());
        tl(args.iter().copied().chain(["--store", &endpoint, "--store", "token=x"])).text()
    };
    let made = ["index", "hf://datasets/o/b/a.tar", "-o", index.to_str().unwrap(), "--json"];
    run(&made);
    let digest = run(&["digest", "hf://datasets/o/b/a.tlidx"]);
    assert_eq!(digest, tl(["digest", to]).text());
}

#[test]
fn the_folder_of_an_index_is_a_bucket_or_a_repository_at_least() {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("b")).unwrap();
    for name in ["0.jpg", "b/1.jpg"] {
        std::fs::write(root.path().join(name), "").unwrap();
    }
    let index = root.path().join("x.tlidx");
    let run = |dialect, options: &[&str], urls: &[&str]| {
        let service = Service::new(dialect);
        service.objects.put_folder("b", root.path()).unwrap();
        let server = serve(Arc::new(service), 0).unwrap();
        let endpoint = format!("endpoint={}", server.endpoint());
        let index = ["-o", index.to_str().unwrap(), "-f", "--store", &endpoint];
        tl(["index"].iter().chain(urls).chain(&index).chain(options))
    };
    let s3 = ["--store", "access_key_id=dummy", "--store", "secret_access_key=x"];
    let hub = ["--store", "token=x"];
    let cases = [
        (Dialect::S3, &s3[..], "s3://b"),
        (Dialect::Hub, &hub[..], "hf://datasets/o/b"),
        (Dialect::Hub, &hub[..], "hf://datasets/o/b@main"),
    ];
    for (dialect, options, url) in cases {
        let made = run(dialect, options, &[url]);
        let place = format!("copy the index to {url}/x.tlidx, where its shards are");
        assert!(made.stderr.contains(&place), "{}", made.stderr);
    }
    let error = run(Dialect::Hub, &hub, &["hf://datasets/o/b@v1", "hf://datasets/o/b"]).error(2);
    let outside = "hf://datasets/o/b/: lies outside of hf://datasets/o/b@v1/, expected shards in the \
                   folder of their index or below it";
    assert!(error.contains(outside), "{error}");
}

#[test]
fn a_shard_that_the_hub_has_under_another_name_is_an_error_that_says_so() {
    let root = tempfile::tempdir().unwrap();
    let tar = root.path().join("a.tar");
    let (from, to) = (photos(), tar.to_str().unwrap());
    tl(["convert", from.to_str().unwrap(), "-o", to, "--to", "tar", "--quiet"]).good();
    let moved = tempfile::tempdir().unwrap();
    let index = moved.path().join("a.tlidx");
    let run = |name: &str, folder: &Path, args: &[&str]| {
        let service = Service::new(Dialect::Hub);
        service.objects.put_folder(name, folder).unwrap();
        let server = serve(Arc::new(service), 0).unwrap();
        let endpoint = format!("endpoint={}", server.endpoint());
        tl(args.iter().copied().chain(["--store", &endpoint, "--store", "token=x"]))
    };
    let made = ["index", "hf://datasets/o/b/old/a.tar", "-o", index.to_str().unwrap(), "--json"];
    run("b/old", root.path(), &made).good();
    let error = run("b/new", moved.path(), &["digest", "hf://datasets/o/b/new/a.tlidx"]).error(2);
    let missing = "no such object in the version that hf://datasets/o/b/new/a.tlidx names; make the \
                   index anew where the shards are now, with tl index";
    assert!(error.contains(missing), "{error}");
}

#[test]
fn commands_take_patterns_ranges_and_urls_of_files() {
    let root = tempfile::tempdir().unwrap();
    let photos = photos();
    let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    for name in ["a-0.tbl", "a-1.tbl", "b c.tbl"] {
        tl(["convert", photos.to_str().unwrap(), "-o", &at(name), "--quiet"]).good();
    }
    let store = Store::new(service(root.path()));
    let run = |args: &[&str]| store.run(args);
    let file = format!("file://{}", at("b%20c.tbl"));
    let ranges = at("a-{1..1}.tbl");
    let digest = tl(["digest", &at("a-0.tbl")]).text();
    for one in ["s3://b/b*.tbl", "s3://b/a-{1..1}.tbl", &file, &ranges] {
        assert_eq!(run(&["digest", one]).text(), digest, "{one}");
        run(&["verify", one]).good();
        run(&["ls", one]).good();
    }
    for several in ["s3://b/a-*.tbl", "s3://b/a-{0..1}.tbl"] {
        let facts = json_lines(&run(&["info", several, "--json"]).text());
        let paths: Vec<_> = facts.iter().map(|facts| facts["path"].as_str()).collect();
        assert_eq!(paths, [Some("s3://b/a-0.tbl"), Some("s3://b/a-1.tbl"), None]);
        assert_eq!(facts[2]["shards"], 2);
    }
    let none = run(&["info", "s3://b/z*"]).error(2);
    assert!(none.contains("s3://b/z*: no object matches this pattern"), "{none}");
}

#[test]
fn an_index_stands_for_its_shards() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name).to_str().unwrap().to_owned();
    let photos = photos();
    for (name, kind) in [("a.tbl", "tbl2"), ("b.tar", "tar")] {
        let (from, to) = (photos.to_str().unwrap(), at(name));
        tl(["convert", from, "-o", &to, "--to", kind, "--quiet"]).good();
    }
    let store = Store::new(service(root.path()));
    let run = |args: &[&str]| store.run(args);
    let digest = |shards: &[&str]| {
        let bench = ["bench", "--digest", "--seconds", "0.1", "--recipe", "raw"];
        let text = run(&[&bench, shards].concat()).text();
        text.lines().find(|line| line.starts_with("epoch 0 ")).unwrap().to_owned()
    };
    let urls = ["s3://b/a.tbl", "s3://b/b.tar"];
    let expected = digest(&urls);

    let index = run(&["index", urls[0], urls[1], "-o", &at("all.tlidx"), "--json"]);
    let result = &json_lines(&index.text())[0];
    assert_eq!((result["shards"].as_u64(), result["folder"].as_str()), (Some(2), Some("s3://b/")));
    store.service.objects.put("b/all.tlidx", std::fs::read(at("all.tlidx")).unwrap());
    assert_eq!(digest(&["s3://b/all.tlidx"]), expected);
    let update = run(&["index", urls[0], urls[1], "-o", &at("all.tlidx"), "--update"]);
    let line = String::from_utf8(update.stdout).unwrap();
    assert!(line.contains("all.tlidx: 2 shards (2 unchanged), "), "{line}");
    let note = "copy the index to s3://b/all.tlidx, where its shards are";
    assert!(update.stderr.contains(note), "{}", update.stderr);

    // A local index of local shards.
    let local = [at("a.tbl"), at("b.tar")];
    tl(["index", &local[0], &local[1], "-o", &at("local.tlidx")]).good();
    assert_eq!(digest(&[&at("local.tlidx")]), expected);
    let exists = tl(["index", &local[0], "-o", &at("local.tlidx")]).error(2);
    assert!(exists.contains("exists already (-f replaces it)"), "{exists}");
    let both = run(&["index", &local[0], urls[0], "-o", &at("x.tlidx")]).error(2);
    assert!(both.contains("s3://b/a.tbl: lies outside of "), "{both}");
}

#[test]
fn settings_of_stores_are_arguments() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(service(root.path()));
    let ls = ["ls", "s3://photos/", "--connections", "2", "--deadline", "9.5", "--no-hedge"];
    assert_eq!(store.run(&ls).code, Some(0));
    for (argument, value, expected) in [
        ("--connections", "0", "would be zero"),
        ("--deadline", "0", "expected seconds, more than 0"),
        ("--deadline", "-1", "expected seconds, more than 0"),
        ("--deadline", "soon", "expected seconds, more than 0"),
    ] {
        let argument = format!("{argument}={value}");
        let refused = tl(["ls", "s3://photos/", &argument]).error(2);
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn what_costs_many_requests_or_bytes_is_noted_once() {
    const SAMPLES: usize = 66;
    let root = tempfile::tempdir().unwrap();
    let names: Vec<_> = (0..SAMPLES).map(|number| format!("{number:02}.bin")).collect();
    let bytes = vec![7; 1 << 20];
    for (shard, names) in names.chunks(SAMPLES / 2).enumerate() {
        let members: Vec<_> = names.iter().map(|name| (name.as_bytes(), &*bytes)).collect();
        write(root.path(), &format!("{shard}.tar"), &tar(&members));
    }
    let store = Store::new(service(root.path()));
    let run = |args: &[&str]| store.run(args);
    let archives = "tl: s3://b/0.tar and 1 more: opening archives in a store without a shard index \
                    reads all of them (67 MiB); make one with `tl index`\n";
    let shuffle = "tl: a full shuffle of samples in a store takes up to 66 requests per epoch, one for \
                   each sample; the shuffle block:16x256 takes about a fifteenth of them with the default \
                   read-ahead\n";
    let notes = |command: &str, data: &str, more: &[&str]| {
        let fixed = [command, data, "--recipe", "raw", "--seconds", "0.1"];
        let run = run(&[&fixed[..], more].concat());
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        [archives, shuffle].map(|note| run.stderr.matches(note).count())
    };
    assert_eq!(notes("bench", "s3://b/*.tar", &["--read-ahead", "8M"]), [1, 1]);
    // The others have an index, so that not each of them reads the archives.
    let index = root.path().join("all.tlidx");
    run(&["index", "s3://b/*.tar", "-o", index.to_str().unwrap()]);
    store.service.objects.put("b/all.tlidx", std::fs::read(index).unwrap());
    let indexed = |command: &str, more: &[&str]| notes(command, "s3://b/all.tlidx", more);
    for command in ["bench", "doctor"] {
        assert_eq!(indexed(command, &["--read-ahead", "8M"]), [0, 1], "{command}");
    }
    assert_eq!(indexed("bench", &[]), [0, 0], "most samples have neighbours ahead");
    let blocks = ["--read-ahead", "8M", "--shuffle", "block:4x2"];
    assert_eq!(indexed("bench", &blocks), [0, 0]);
    let ranks = ["--read-ahead", "8M", "--rank", "0", "--world", "2", "--batch-size", "4"];
    assert_eq!(indexed("bench", &ranks), [0, 0], "half of the requests");
    // What the note says is so.
    let before = store.service.counts().bytes;
    run(&["info", "s3://b/*.tar"]);
    assert!(store.service.counts().bytes - before >= SAMPLES as u64 * bytes.len() as u64);
}

#[test]
fn blocks_on_disk_spare_requests() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::new(service(root.path()));
    let folder = root.path().join("cache");
    let folder = folder.to_str().unwrap();
    let cached = ["--cache", "blocks", "--cache-folder", folder, "--cache-disk", "1G"];
    let bench = |more: &[&str]| {
        let args = ["bench", "s3://photos/", "--recipe", "raw", "--digest", "--json"];
        let args = [&args[..], &["--seconds", "0"], more].concat();
        json_lines(&store.run(&args).text()).remove(0)
    };
    let expected = bench(&[])["digest"].clone();
    for epoch in 0..2 {
        let line = bench(&cached);
        assert_eq!(line["digest"], expected);
        let bytes = line["cache"]["bytes_from_blocks"].as_u64().unwrap();
        assert!(epoch == 0 || bytes > 0, "{line}");
        assert_eq!(line["cache"]["dropped_blocks"], 0);
    }
    let run = store.run(&["bench", "s3://photos/", "--cache", "blocks", "--cache-memory", "1M"]);
    let message = run.error(2);
    assert!(message.contains("--cache-folder"), "{message}");
}
