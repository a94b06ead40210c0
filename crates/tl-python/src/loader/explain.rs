//! The settings of a loader in words.

use std::fmt::Write as _;

use tl_pipeline::{
    Beyond, ClipColumns, ClipSampling, ClipStart, ClipWork, Columns, Dataset, DevicePart, Loader,
    LoaderNote, Spacing, TokenNumber, TokenWork, Work,
};
use tl_tokens::Sequences;
use turboloader::Explanation;

/// The columns of a table's batches, in words.
fn columns_in_words(columns: &Columns) -> String {
    let mut text = match &columns.columns {
        None => "all of numbers".to_owned(),
        Some(columns) => {
            columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(", ")
        }
    };
    if !columns.features.is_empty() {
        text += &format!("; features {}", columns.features.join(", "));
    }
    if let Some(label) = &columns.label {
        text += &format!("; label {label}");
    }
    if let Some(neighbors) = &columns.neighbors {
        text += &format!("; neighbors {:?}", neighbors.fanouts);
    }
    text
}

/// The choice of frames, in words.
fn clips_in_words(work: &ClipWork) -> String {
    let ClipSampling { frames, clips, spacing, start, beyond } = &work.sampling;
    let ClipColumns { from, to, at } = &work.columns;
    let distance = match spacing {
        Spacing::Frames(1) => "consecutive frames".to_owned(),
        Spacing::Frames(distance) => format!("frames, {distance} apart"),
        Spacing::Seconds(seconds) => format!("frames, {seconds} s apart"),
        Spacing::Fps(fps) => format!("frames at {fps} a second"),
        other => format!("frames, {other:?}"),
    };
    let start = match (at, start) {
        (Some(at), _) => format!("from the time in column {at} on"),
        (None, ClipStart::At(seconds)) => format!("from {seconds} s on"),
        (None, ClipStart::Uniform) => "at equal distances".to_owned(),
        (None, ClipStart::Center) => "in the middle".to_owned(),
        (None, ClipStart::Random | _) => "at random places".to_owned(),
    };
    let beyond = match beyond {
        Beyond::Error => "short videos are errors",
        Beyond::Wrap => "short videos again and again",
        Beyond::RepeatLast | _ => "short videos with their last frame again",
    };
    let part = match (from, to) {
        (None, None) => String::new(),
        (Some(from), None) => format!(", after the time in column {from}"),
        (None, Some(to)) => format!(", before the time in column {to}"),
        (Some(from), Some(to)) => format!(", between the times in columns {from} and {to}"),
    };
    format!("{clips} of {frames} {distance}, {start}{part}; {beyond}")
}

/// The sequences of tokens and their type, in words.
fn tokens_in_words(dataset: &Dataset, TokenWork { number, .. }: TokenWork) -> String {
    let Some(sequences) = dataset.sequences() else { return String::new() };
    let number = match number {
        TokenNumber::I32 => "int32",
        TokenNumber::I64 => "int64",
        TokenNumber::Stored | _ => "as stored",
    };
    let targets = if sequences.targets() { " and their targets" } else { "" };
    let rows = match sequences {
        Sequences::Windows(windows) => {
            let offset = if windows.offsets() > 1 { ", from a random offset" } else { "" };
            format!("every {} tokens{offset}", windows.stride())
        }
        Sequences::Documents(_) => "one document a row".to_owned(),
        Sequences::Packed(_) | _ => "packed documents".to_owned(),
    };
    format!("{}{targets}, {number}, {rows}", sequences.length())
}

/// The size of the images that operations are explained for; photographs of ImageNet have it.
const EXPLAINED_SIZE: (u32, u32) = (500, 375);

/// The data set, the order and the threads, a line each, and then what `tl explain` says of the
/// recipe.
pub(super) fn explain(loader: &Loader) -> String {
    let config = loader.config();
    let dataset = loader.dataset();
    let mut text = String::new();
    let line = |text: &mut String, name: &str, value: &dyn std::fmt::Display| {
        // Writing to a string does not fail.
        writeln!(text, "{name:<9}{value}").unwrap_or_default();
    };
    let samples = dataset.len();
    let shards = dataset.shards().len();
    let classes = dataset.class_names().len();
    line(
        &mut text,
        "data",
        &format_args!("{samples} samples, {classes} classes, in {shards} places"),
    );
    match &config.work {
        Work::Images(recipe) => line(&mut text, "recipe", recipe),
        Work::Clips(clips @ ClipWork { recipe, .. }) => {
            line(&mut text, "clips", &clips_in_words(clips));
            line(&mut text, "recipe", recipe);
        }
        Work::Columns(columns) => line(&mut text, "columns", &columns_in_words(columns)),
        Work::Tokens(tokens) => line(&mut text, "tokens", &tokens_in_words(dataset, *tokens)),
        Work::Bytes | Work::Views | _ => line(&mut text, "recipe", &"the stored bytes"),
    }
    let shuffle = config.sampler.shuffle;
    line(&mut text, "order", &format_args!("shuffle {shuffle}, seed {}", config.seed));
    let batch = config.batch_size;
    let world = config.shard.world;
    let rank = config.shard.rank;
    let batches = loader.len();
    let what = format_args!("{batches} of {batch}, rank {rank} of {world}").to_string();
    line(&mut text, "batches", &what);
    let workers = config.workers;
    let prefetch = config.prefetch;
    line(&mut text, "threads", &format_args!("{workers} workers, {prefetch} batches ahead"));
    if let Some(device) = loader.device_use() {
        line(&mut text, "device", &device);
    }
    let notes = loader.notes();
    for note in notes.iter().filter(|note| matches!(note, LoaderNote::Device { .. })) {
        line(&mut text, "note", note);
    }
    let memory = loader.memory();
    // Known once a batch was made.
    if memory.batch_bytes > 0 {
        line(&mut text, "memory", &memory);
    }
    if let Work::Images(recipe) = &config.work {
        text.push('\n');
        let part = loader.device_use().map(|device| DevicePart::from(&device));
        let on_device = |explanation: Explanation| match part {
            Some(part) => explanation.with_device_part(part).to_string(),
            None => explanation.to_string(),
        };
        match Explanation::new(recipe, EXPLAINED_SIZE, config.seed) {
            Ok(explanation) => text.push_str(&on_device(explanation)),
            Err(error) => line(&mut text, "places", &error),
        }
    }
    text
}
