//! nvJPEG with a library that decodes nothing, and with the real one that `TURBOLOADER_TEST_NVJPEG`
//! names: its version without a device, its pixels on the one of `TURBOLOADER_TEST_DEVICE`.

use std::env;

use tl_simd::resample::{Filter, Rect, Resize, ResizeArea};

use super::*;
use crate::picture::decoder::PictureDecoder;
use crate::tests::library::library;
use crate::tests::{device, real_device};
use crate::{BufferLimits, Images, Picture, PictureWeights, Placement, RowPicture, Uploader};

fn loaded(macros: &[&str]) -> Result<NvJpegLibrary, DeviceReason> {
    let path = library("nvjpeg.c", macros, &env::temp_dir());
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
    let made = library("nvjpeg.c", &["MAJOR=12"], &env::temp_dir());
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
    let old = loaded(&["MAJOR=10"]).unwrap_err();
    let expected = "nvJPEG: nvjpegGetProperty: version 10.4.7, expected 11.0 or newer";
    assert_eq!(old.to_string(), expected);
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

/// The picture of a file with this frame, with its columns from right to left.
fn flipped(sample: u64, file: &[u8], width: u32, height: u32) -> Picture {
    let window = Rect::of_size(width, height);
    let size = (width, height);
    let filter = Filter::Bilinear;
    let whole: ResizeArea = Resize { region: window, resized: size, window, filter }.into();
    let placement =
        Placement { size, left: 0, top: 0, fill: [0; 3], flip: true, flip_vertical: false };
    let mut picture = Picture::default();
    let weights = &mut PictureWeights::default();
    assert!(picture.prepare_file(sample, file, size, &whole, &placement, weights));
    assert!(!picture.is_empty() && picture.copied_bytes() > file.len());
    picture
}

/// The batch of these pictures, each of so many pixels.
fn uploaded(macros: &[&str], pictures: &[Picture], pixels: usize) -> Result<Vec<u8>, DeviceReason> {
    let device = device();
    let limits = BufferLimits { scratch: 1 << 16, lanes: 1, ..BufferLimits::default() };
    let uploader = Uploader::new(&device, limits)?;
    let nvjpeg = Arc::new(NvJpeg::new(&device, loaded(macros)?)?);
    let decoder = Some(Arc::new(PictureDecoder::new(&device)?.with_nvjpeg(nvjpeg)));
    let count = pictures.len();
    let area = count * pixels * CHANNELS;
    let images = Images { conversion: None, decoder, count, pixels, width: pixels, area };
    let rows = pictures.iter().enumerate();
    let rows: Vec<_> = rows.map(|(row, picture)| RowPicture { row, picture }).collect();
    let mut found = Vec::new();
    for _ in 0..2 {
        let source = Arc::new(vec![0; area]);
        found = uploader.upload(source, Some(&images), &rows, &[])?.read()?;
        found.truncate(area);
    }
    assert_eq!(uploader.stats().nvjpeg, 2 * count as u64);
    Ok(found)
}

#[test]
fn files_of_a_batch_are_decoded_to_planes_for_the_kernels() {
    if real_device().is_some() {
        return;
    }
    let sizes: [(u16, u16); 4] = [(6, 20), (60, 2), (1, 120), (120, 1)];
    let files = sizes.map(|(width, height)| file(0xC0, width, height));
    let pictures: Vec<Picture> = (0..)
        .zip(&files)
        .zip(sizes)
        .map(|((sample, file), (width, height))| flipped(sample, file, width.into(), height.into()))
        .collect();
    let found = uploaded(&[], &pictures, 120).unwrap();
    for ((image, file), (width, _)) in found.chunks(360).zip(&files).zip(sizes) {
        let pixels: Vec<u8> = file.iter().copied().cycle().take(360).collect();
        let flip = |row: &[u8]| row.rchunks(CHANNELS).flatten().copied().collect::<Vec<u8>>();
        let rows = pixels.chunks(usize::from(width) * CHANNELS);
        let expected: Vec<u8> = rows.flat_map(flip).collect();
        assert!(image == expected, "{width}");
    }
}

#[test]
fn a_file_that_the_library_refuses_is_named_by_its_sample() {
    if real_device().is_some() {
        return;
    }
    let mut longer = file(0xC0, 4, 4);
    longer.extend([0; 80]);
    let pictures = [
        flipped(7, &file(0xC0, 4, 4), 4, 4),
        flipped(12, &longer, 4, 4),
        flipped(13, &file(0xC0, 2, 8), 2, 8),
    ];
    let refused = format!("REFUSED={}", longer.len());
    let error = uploaded(&[&refused], &pictures, 16).unwrap_err();
    let expected = "sample 12: nvJPEG: nvjpegDecodeBatched: NVJPEG_STATUS_BAD_JPEG";
    assert_eq!(error.to_string(), expected);
    let large = [flipped(5, &file(0xC0, 200, 150), 200, 150)];
    let error = uploaded(&[], &large, 200 * 150).unwrap_err();
    let expected = "sample 5: nvJPEG: memory for its pixels: 183600 bytes are needed, expected \
                    65536 at most: let the loader have more of the device's memory";
    assert_eq!(error.to_string(), expected);
    let other = [flipped(3, &file(0xC0, 4, 4), 2, 8)];
    let error = uploaded(&[], &other, 16).unwrap_err();
    let expected = "sample 3: nvJPEG: nvjpegGetImageInfo: an image of 4x4 pixels, expected 2x8";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn the_real_library_decodes_on_a_real_device() {
    let (Some(path), Some(_)) = (real_library(), real_device()) else { return };
    let device = device();
    let library = NvJpegLibrary::load(Some(&path), None).unwrap();
    let nvjpeg = Arc::new(NvJpeg::new(&device, library).unwrap());
    let mut decoder = nvjpeg.decoder().unwrap();
    let stream = device.stream().unwrap();
    let photos = tl_testdata::shipped!("photos");
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
