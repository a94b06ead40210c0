//! nvJPEG with a library that decodes nothing, and with the real one that `TURBOLOADER_TEST_NVJPEG`
//! names: its version without a device, its pixels on the one of `TURBOLOADER_TEST_DEVICE`.

use std::env;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::tests::{device, real_device};

/// A library that was compiled with these macros.
fn library_with(macros: &[&str]) -> PathBuf {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let library = env::temp_dir().join(format!("libnvjpeg-{}-{number}.so", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/nvjpeg.c");
    let status = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-fvisibility=hidden"])
        .args(macros.iter().map(|text| format!("-D{text}")))
        .arg("-o")
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    library
}

fn loaded(macros: &[&str]) -> Result<NvJpegLibrary, DeviceReason> {
    let path = library_with(macros);
    let loaded = NvJpegLibrary::load(Some(&path), None);
    std::fs::remove_file(path).unwrap();
    loaded
}

fn real_library() -> Option<PathBuf> {
    env::var_os("TURBOLOADER_TEST_NVJPEG").map(PathBuf::from)
}

/// The front of a JPEG file with this marker of a frame.
fn file(marker: u8, width: u16, height: u16) -> Vec<u8> {
    let mut file = vec![0xFF, 0xD8, 0xFF, marker, 0, 17, 8];
    file.extend(height.to_be_bytes());
    file.extend(width.to_be_bytes());
    file.extend([3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]);
    file
}

#[test]
fn a_library_has_a_version_and_no_need_of_a_driver() {
    let version = loaded(&["MAJOR=13"]).unwrap().version();
    assert_eq!(version, NvJpegVersion { major: 13, minor: 4, patch: 7 });
    assert_eq!(version.to_string(), "13.4.7");
    if let Some(path) = real_library() {
        let version = NvJpegLibrary::load(Some(&path), None).unwrap().version();
        assert!(version.major >= 11, "{version}");
    }
}

#[test]
fn the_library_of_a_wheel_is_found_in_the_folder_of_packages() {
    let packages = env::temp_dir().join(format!("packages-{}", std::process::id()));
    let folder = packages.join("nvidia/nvjpeg/lib");
    std::fs::create_dir_all(&folder).unwrap();
    let made = library_with(&["MAJOR=12"]);
    std::fs::copy(&made, folder.join("libnvjpeg.so.12")).unwrap();
    let found = NvJpegLibrary::load(None, Some(&packages));
    std::fs::remove_dir_all(&packages).unwrap();
    std::fs::remove_file(made).unwrap();
    assert_eq!(found.unwrap().version().patch, 7);
}

#[test]
fn libraries_that_do_not_work_are_named() {
    let absent = NvJpegLibrary::load(Some(Path::new("/nowhere/libnvjpeg.so.12")), None);
    let Err(DeviceReason::NoNvJpeg { error }) = &absent else { panic!("{absent:?}") };
    assert!(error.contains("/nowhere/libnvjpeg.so.12"), "{error}");
    let advice = "(pip install 'turboloader-rs[nvjpeg]')";
    assert!(absent.unwrap_err().to_string().ends_with(advice));
    let lacking = loaded(&["nvjpegDecodeBatched=other"]).unwrap_err();
    assert_eq!(lacking, lacks("nvjpegDecodeBatched"));
    assert_eq!(lacking.to_string(), "nvJPEG: nvjpegDecodeBatched: not in the library");
    let failing = loaded(&["FAILING=\"nvjpegGetProperty\"", "STATUS=99"]).unwrap_err();
    assert_eq!(failing.to_string(), "nvJPEG: nvjpegGetProperty: status 99");
    let device = device();
    if real_device().is_some() {
        return;
    }
    let library = loaded(&["FAILING=\"nvjpegCreateEx\""]).unwrap();
    let failing = NvJpeg::new(&device, library).unwrap_err();
    assert_eq!(failing.to_string(), "nvJPEG: nvjpegCreateEx: NVJPEG_STATUS_ARCH_MISMATCH");
}

#[test]
fn files_become_images_in_the_memory_of_the_device() {
    let device = device();
    if real_device().is_some() {
        return;
    }
    let nvjpeg = Arc::new(NvJpeg::new(&device, loaded(&[]).unwrap()).unwrap());
    let mut decoder = nvjpeg.decoder().unwrap();
    let stream = device.stream().unwrap();
    let sizes = [(5, 7), (300, 2), (1, 1)];
    let files = sizes.map(|(width, height)| file(0xC0, width, height));
    let borrowed: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    for _ in 0..2 {
        let decoded = decoder.decode(&borrowed, 1 << 20, &stream).unwrap();
        let bytes = decoded.read(&stream).unwrap();
        assert_eq!(decoded.images().len(), sizes.len());
        for (image, file) in decoded.images().iter().zip(&files) {
            let found = &bytes[image.offset..][..image.width * image.height * 3];
            let expected: Vec<u8> = file.iter().copied().cycle().take(found.len()).collect();
            assert!(found == expected, "{image:?}");
        }
    }
    let shapes: Vec<_> = decoder.decode(&borrowed, 1 << 20, &stream).unwrap().images().to_vec();
    assert_eq!(shapes[1], Pixels { offset: 256, width: 300, height: 2 });
    assert!(decoder.decode(&[], 0, &stream).unwrap().images().is_empty());
}

#[test]
fn files_that_the_library_does_not_take_are_errors_by_name() {
    let device = device();
    if real_device().is_some() {
        return;
    }
    let nvjpeg = Arc::new(NvJpeg::new(&device, loaded(&[]).unwrap()).unwrap());
    let mut decoder = nvjpeg.decoder().unwrap();
    drop(nvjpeg);
    let stream = device.stream().unwrap();
    let mut check = |file: &[u8], most: usize, expected: &str| {
        let refused = decoder.decode(&[file], most, &stream).unwrap_err();
        assert_eq!(refused.to_string(), expected);
    };
    check(b"", 100, "nvJPEG: nvjpegGetImageInfo: NVJPEG_STATUS_BAD_JPEG");
    let progressive = file(0xC2, 5, 5);
    check(&progressive, 100, "nvJPEG: nvjpegGetImageInfo: NVJPEG_STATUS_JPEG_NOT_SUPPORTED");
    let empty = file(0xC0, 0, 5);
    check(&empty, 100, "nvJPEG: nvjpegGetImageInfo: an image of 0 x 5 pixels");
    let large = file(0xC0, 60_000, 60_000);
    let expected = "out of device memory: 10800000000 bytes are needed, and 100 are free";
    check(&large, 100, expected);
}

#[test]
fn the_real_library_decodes_on_a_real_device() {
    let (Some(path), Some(_)) = (real_library(), real_device()) else { return };
    let device = device();
    let library = NvJpegLibrary::load(Some(&path), None).unwrap();
    let nvjpeg = Arc::new(NvJpeg::new(&device, library).unwrap());
    let mut decoder = nvjpeg.decoder().unwrap();
    let stream = device.stream().unwrap();
    let photos = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/photos");
    let classes = std::fs::read_dir(photos)
        .unwrap()
        .filter_map(|entry| entry.unwrap().path().read_dir().ok());
    let files: Vec<Vec<u8>> = classes
        .flatten()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .filter(|file| file.starts_with(&[0xFF, 0xD8]))
        .collect();
    let borrowed: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
    let decoded = decoder.decode(&borrowed, 1 << 30, &stream).unwrap();
    let bytes = decoded.read(&stream).unwrap();
    for image in decoded.images() {
        let pixels = &bytes[image.offset..][..image.width * image.height * 3];
        assert!(pixels.iter().any(|&byte| byte != pixels[0]), "a photograph: {image:?}");
    }
}
