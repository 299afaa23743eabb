//! The typst environment of the template: itself, the document and the fonts.

use typst::diag::{FileError, FileResult};
use typst::foundations::{Bytes, Datetime, Dict, Duration, IntoValue};
use typst::syntax::{FileId, RootedPath, Source, VirtualPath, VirtualRoot};
use typst::text::{Font, FontBook};
use typst::utils::LazyHash;
use typst::{Library, LibraryExt, World};

use crate::{PdfError, PdfPaperSize};

const TEMPLATE: &str = include_str!("memo.typ");

/// The font styles that the template uses. `typst-assets` also contains them, but with 8 MB of
/// other fonts.
const FONTS: [&[u8]; 6] = [
    include_bytes!("../fonts/LibertinusSerif-Regular.otf"),
    include_bytes!("../fonts/LibertinusSerif-Bold.otf"),
    include_bytes!("../fonts/LibertinusSerif-Italic.otf"),
    include_bytes!("../fonts/LibertinusSerif-BoldItalic.otf"),
    include_bytes!("../fonts/DejaVuSansMono.ttf"),
    include_bytes!("../fonts/DejaVuSansMono-Bold.ttf"),
];

/// A typst world with a single source file.
pub(crate) struct TemplateWorld {
    library: LazyHash<Library>,
    book: LazyHash<FontBook>,
    fonts: Vec<Font>,
    template: Source,
}

impl TemplateWorld {
    pub(crate) fn new(document: String, paper: PdfPaperSize) -> Result<Self, PdfError> {
        let paper = match paper {
            PdfPaperSize::A4 => "a4",
            PdfPaperSize::Letter => "us-letter",
        };
        let inputs: Dict =
            [("document".into(), document.into_value()), ("paper".into(), paper.into_value())]
                .into_iter()
                .collect();
        let library = Library::builder().with_inputs(inputs).build();
        let fonts: Vec<Font> =
            FONTS.into_iter().flat_map(|font| Font::iter(Bytes::new(font))).collect();
        let path = VirtualPath::new("memo.typ")
            .map_err(|_| PdfError::Template("invalid file name".to_owned()))?;
        let id = RootedPath::new(VirtualRoot::Project, path).intern();
        Ok(Self {
            library: LazyHash::new(library),
            book: LazyHash::new(FontBook::from_fonts(&fonts)),
            fonts,
            template: Source::new(id, TEMPLATE.to_owned()),
        })
    }
}

impl World for TemplateWorld {
    fn library(&self) -> &LazyHash<Library> {
        &self.library
    }

    fn book(&self) -> &LazyHash<FontBook> {
        &self.book
    }

    fn main(&self) -> FileId {
        self.template.id()
    }

    fn source(&self, id: FileId) -> FileResult<Source> {
        if id == self.template.id() {
            Ok(self.template.clone())
        } else {
            Err(FileError::AccessDenied)
        }
    }

    fn file(&self, _: FileId) -> FileResult<Bytes> {
        Err(FileError::AccessDenied)
    }

    fn font(&self, index: usize) -> Option<Font> {
        self.fonts.get(index).cloned()
    }

    fn today(&self, _: Option<Duration>) -> Option<Datetime> {
        None
    }
}
