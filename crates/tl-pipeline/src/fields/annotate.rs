//! Fields of one sample: read in addition to its image, and moved by the image's plan.

use tl_decode::{DecodeOptions, Decoder, Image, PixelType};
use tl_handoff::slab::ColumnsMut;
use tl_transform::{Mask, Plan, UserAnnotations, UserMask};

use super::boxes::BoxReader;
use super::files::Files;
use super::instances::InstanceMaskReader;
use super::readers::FieldReaders;
use super::{Fields, MaskField, MaskType, RowFields};
use crate::dataset::Dataset;
use crate::error::{AnnotationFault, SampleFault};
use crate::row::RowExtras;

/// An image that is in its row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed<'a> {
    /// The plans of the image; annotations go with one.
    pub(crate) plans: &'a [Plan],
    /// Width and height before.
    pub(crate) size: (u32, u32),
    /// Width and height of what the batch's images lie in; `None` where they have their own sizes.
    pub(crate) room: Option<(u32, u32)>,
}

impl Placed<'_> {
    /// The plan of the one image that annotations go with.
    pub(super) fn plan(&self) -> &Plan {
        let [plan] = self.plans else { unreachable!("`Fields::check` allows one image") };
        plan
    }
}

/// Reads fields. Keeps its memory from sample to sample, except that of annotations.
#[derive(Debug)]
pub(crate) struct Annotator {
    fields: Fields,
    boxes: Option<BoxReader>,
    instance_masks: Option<InstanceMaskReader>,
    files: Files,
    readers: FieldReaders,
    decoder: Decoder,
    image: Image,
    /// The annotations of the sample as a user's transform has left them.
    carried: Option<UserAnnotations>,
}

impl Annotator {
    /// For fields that [`Fields::check`] has seen.
    pub(crate) fn new(fields: &Fields, decode: DecodeOptions, readers: &FieldReaders) -> Self {
        let limit = decode.limits.max_decoded_bytes;
        let instance_masks = fields.instance_masks.as_ref();
        Self {
            fields: fields.clone(),
            instance_masks: instance_masks.map(|field| InstanceMaskReader::new(field, limit)),
            boxes: fields.boxes.as_ref().map(BoxReader::new),
            files: Files::default(),
            readers: readers.clone(),
            decoder: Decoder::new(decode),
            image: Image::new(),
            carried: None,
        }
    }

    /// Puts the name and the sidecar files of sample `index` into its row, if those that are needed
    /// have no more than `limit` bytes together. Returns how many bytes of files were read.
    pub(crate) fn read(
        &mut self,
        dataset: &Dataset,
        index: u64,
        limit: u64,
        row: &mut RowFields,
    ) -> Result<usize, SampleFault> {
        if self.fields.keys {
            row.key = dataset.entry(index)?.key.map(std::borrow::Cow::into_owned);
        }
        self.files.clear();
        self.carried = None;
        if !self.fields.reads_files() {
            return Ok(0);
        }
        let read = self.files.read(&self.fields, dataset, index, limit)?;
        self.fields.texts.iter().try_for_each(|text| self.files.check(text))?;
        row.bytes.extend(self.fields.bytes.iter().map(|file| self.files.copy(file)));
        Ok(read)
    }

    /// Puts the values that were read into their columns, if arrays have no more than `limit` bytes;
    /// keypoints of samples too, as they are stored.
    pub(crate) fn write_values(
        &mut self,
        limit: u64,
        columns: &mut ColumnsMut<'_, RowExtras>,
    ) -> Result<(), AnnotationFault> {
        let Self { files, readers, .. } = self;
        readers
            .columns()
            .try_for_each(|value| value.write(files, limit, columns.get(value.column())))
    }

    /// The annotations that were read, as the image lies, for a user's transform. Arrays may have
    /// `limit` bytes.
    pub(crate) fn moved(
        &mut self,
        placed: &Placed<'_>,
        limit: u64,
    ) -> Result<UserAnnotations, SampleFault> {
        let mask = match &self.fields.mask {
            Some(field) => {
                let field = field.clone();
                Some(self.moved_mask(&field, placed)?.into_numbers())
            }
            None => None,
        };
        let carried = self.carried.as_ref();
        let files = &mut self.files;
        let boxes = self.boxes.as_ref();
        let boxes = boxes.map(|boxes| boxes.moved(files, placed, carried)).transpose()?;
        let mut keypoints = Vec::with_capacity(self.readers.keypoints.len());
        for (place, reader) in self.readers.keypoints.iter_mut().enumerate() {
            let carried = carried.map(|carried| &*carried.keypoints[place].numbers);
            keypoints.push(reader.moved(files, placed, carried, limit)?);
        }
        let masks = self.instance_masks.as_ref();
        let carried = carried.and_then(|carried| carried.masks.as_deref());
        let masks = masks.map(|masks| masks.moved(files, placed, carried)).transpose()?;
        Ok(UserAnnotations { boxes, keypoints, masks, mask })
    }

    /// Takes annotations as a user's transform has left them for those of the sample.
    pub(crate) fn carry(&mut self, annotations: UserAnnotations) {
        self.carried = Some(annotations);
    }

    /// Puts the boxes, the keypoints and the masks that were read into the row, as the image lies
    /// there.
    pub(crate) fn place(
        &mut self,
        placed: &Placed<'_>,
        row: &mut RowFields,
        mask: &mut [u8],
        columns: &mut ColumnsMut<'_, RowExtras>,
    ) -> Result<(), SampleFault> {
        let carried = self.carried.as_ref();
        let files = &mut self.files;
        let boxes = self.boxes.as_ref();
        let stays = boxes.map(|boxes| boxes.place(files, placed, carried, row)).transpose()?;
        let stays = stays.as_deref();
        let keypoints = &self.readers.keypoints;
        row.keypoints.resize_with(keypoints.len(), Vec::new);
        for (place, (reader, points)) in keypoints.iter().zip(&mut row.keypoints).enumerate() {
            let carried = carried.map(|carried| &*carried.keypoints[place].numbers);
            match reader.layout().column {
                Some(column) => reader.move_column(placed, carried, columns.get(column))?,
                None => reader.place(files, placed, carried, stays, points)?,
            }
        }
        if let Some(masks) = &self.instance_masks {
            let carried = carried.and_then(|carried| carried.masks.as_deref());
            masks.place(files, placed, carried, stays, &mut row.instance_masks)?;
        }
        let Some(field) = self.fields.mask.clone() else { return Ok(()) };
        let MovedMask { low, high } = self.moved_mask(&field, placed)?;
        let high = high.as_ref().map(Mask::data);
        match placed.room {
            Some(room) => write(low.data(), high, low.size(), &field, room, mask),
            None => row.mask.extend_from_slice(low.data()),
        }
        Ok(())
    }

    /// The bytes of the sidecar file of the last sample that `file` names.
    pub(crate) fn file(&self, file: &str) -> Result<&[u8], AnnotationFault> {
        self.files.bytes(file)
    }

    /// Releases buffers larger than `bytes`.
    pub(crate) fn trim(&mut self, bytes: usize) {
        self.files.clear();
        self.readers.columns().for_each(|value| value.trim(bytes));
        self.decoder.trim(bytes);
        if self.image.data.capacity() > bytes {
            self.image.data = Vec::new();
        }
    }

    /// The mask of the sample, as the image lies.
    fn moved_mask(
        &mut self,
        field: &MaskField,
        placed: &Placed<'_>,
    ) -> Result<MovedMask, SampleFault> {
        let filled = field.padding.map(|number| placed.plan().with_fill(number));
        let plan = filled.as_ref().unwrap_or_else(|| placed.plan());
        if let Some(carried) = self.carried.as_ref().and_then(|carried| carried.mask.as_ref()) {
            let words = carried.numbers.iter().map(|number| number.to_le_bytes());
            return Ok(MovedMask::of_words(words, carried.is_wide, placed.size, plan)?);
        }
        let bytes = self.files.bytes(&field.file)?;
        self.decoder
            .decode_mask_into(bytes, &mut self.image)
            .map_err(|source| AnnotationFault::Mask { file: field.file.clone(), source })?;
        let width = self.image.width;
        let height = self.image.height;
        if (width, height) != placed.size {
            let (file, (image_width, image_height)) = (field.file.clone(), placed.size);
            let fault =
                AnnotationFault::MaskSize { file, width, height, image_width, image_height };
            return Err(fault.into());
        }
        if self.image.pixels != PixelType::U16 {
            let data = std::mem::take(&mut self.image.data);
            return Ok(MovedMask { low: moved(plan, placed.size, data)?, high: None });
        }
        if field.dtype == MaskType::U8 {
            return Err(AnnotationFault::MaskDepth { file: field.file.clone() }.into());
        }
        let words = self.image.data.as_chunks().0.iter();
        let words = words.map(|word| u16::from_ne_bytes(*word).to_le_bytes());
        Ok(MovedMask::of_words(words, true, placed.size, plan)?)
    }
}

/// The numbers of a mask as its image lies, in bytes that move alike.
struct MovedMask {
    low: Mask,
    /// The upper bytes of numbers of 16 bits.
    high: Option<Mask>,
}

impl MovedMask {
    /// A mask of these numbers, the lower byte first.
    fn of_words(
        words: impl Iterator<Item = [u8; 2]>,
        is_wide: bool,
        size: (u32, u32),
        plan: &Plan,
    ) -> Result<Self, AnnotationFault> {
        let (low, high): (Vec<u8>, Vec<u8>) = words.map(|[low, high]| (low, high)).unzip();
        let low = moved(plan, size, low)?;
        // A fill has 8 bits.
        let high = is_wide.then(|| moved(&plan.with_fill(0), size, high)).transpose()?;
        Ok(Self { low, high })
    }

    fn into_numbers(self) -> UserMask {
        let Self { low, high } = self;
        let upper = high.as_ref().map_or(&[][..], Mask::data);
        let upper = upper.iter().copied().chain(std::iter::repeat(0));
        let words = low.data().iter().zip(upper);
        let numbers = words.map(|(low, high)| u16::from_le_bytes([*low, high])).collect();
        UserMask { size: low.size(), numbers, is_wide: high.is_some() }
    }
}

/// A mask of an image of `size` that moved with it.
fn moved(plan: &Plan, size: (u32, u32), numbers: Vec<u8>) -> Result<Mask, AnnotationFault> {
    let mut mask = Mask::new(size.0, size.1, numbers)?;
    plan.move_mask(&mut mask)?;
    assert_eq!(mask.size(), plan.output_size(), "a mask moves as its image does");
    Ok(mask)
}

/// Writes a mask into the top left corner of its row, and the field's padding around it. `high` has the
/// upper bytes of numbers of 16 bits.
fn write(
    mask: &[u8],
    high: Option<&[u8]>,
    size: (u32, u32),
    field: &MaskField,
    room: (u32, u32),
    out: &mut [u8],
) {
    let (width, height) = size;
    let number = field.dtype.bytes();
    let width = width as usize;
    let room_width = room.0 as usize;
    assert_eq!(out.len(), room_width * room.1 as usize * number, "a row of {room:?}");
    assert!(width <= room_width && height <= room.1, "a mask is as large as its image");
    if width == 0 || room_width == 0 {
        return;
    }
    let (inside, below) = out.split_at_mut(room_width * height as usize * number);
    let rows = inside.chunks_exact_mut(room_width * number);
    for ((row, numbers), start) in rows.zip(mask.chunks_exact(width)).zip((0..).step_by(width)) {
        let (row, right) = row.split_at_mut(width * number);
        put(field.dtype, numbers, high.map(|high| &high[start..start + width]), row);
        field.pad(right);
    }
    field.pad(below);
}

fn put(dtype: MaskType, numbers: &[u8], high: Option<&[u8]>, out: &mut [u8]) {
    let upper = high.unwrap_or_default().iter().copied().chain(std::iter::repeat(0));
    let words = numbers.iter().zip(upper).map(|(low, high)| u16::from_le_bytes([*low, high]));
    match dtype {
        MaskType::U8 => out.copy_from_slice(numbers),
        MaskType::U16 => fill(words.map(u16::to_ne_bytes), out),
        MaskType::I32 => fill(words.map(|number| i32::from(number).to_ne_bytes()), out),
        MaskType::I64 => fill(words.map(|number| i64::from(number).to_ne_bytes()), out),
    }
}

fn fill<const N: usize>(numbers: impl Iterator<Item = [u8; N]>, out: &mut [u8]) {
    out.as_chunks_mut().0.iter_mut().zip(numbers).for_each(|(out, number)| *out = number);
}

impl MaskField {
    /// Fills a part of a row with the field's padding.
    pub(crate) fn pad(&self, out: &mut [u8]) {
        let padding = self.padding.unwrap_or(Self::BATCH_PADDING);
        match self.dtype {
            MaskType::U8 => out.fill(padding),
            MaskType::U16 => out.as_chunks_mut().0.fill(u16::from(padding).to_ne_bytes()),
            MaskType::I32 => out.as_chunks_mut().0.fill(i32::from(padding).to_ne_bytes()),
            MaskType::I64 => out.as_chunks_mut().0.fill(i64::from(padding).to_ne_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_padded_in_either_type() {
        let field = MaskField { padding: Some(9), ..MaskField::new("png") };
        let mut out = [77; 12];
        write(&[1, 2, 3, 4], None, (2, 2), &field, (4, 3), &mut out);
        assert_eq!(out, [1, 2, 9, 9, 3, 4, 9, 9, 9, 9, 9, 9]);
        let field = MaskField { dtype: MaskType::I64, ..field };
        let mut out = [77; 48];
        write(&[1, 255], None, (1, 2), &field, (2, 3), &mut out);
        let numbers = out.as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes));
        assert_eq!(numbers.collect::<Vec<_>>(), [1, 9, 255, 9, 9, 9]);
        let field = MaskField { dtype: MaskType::U16, ..field };
        let mut out = [77; 12];
        write(&[1, 255], Some(&[2, 255]), (1, 2), &field, (2, 3), &mut out);
        let numbers = out.as_chunks().0.iter().map(|bytes| u16::from_ne_bytes(*bytes));
        assert_eq!(numbers.collect::<Vec<_>>(), [513, 9, 65535, 9, 9, 9]);
    }
}
