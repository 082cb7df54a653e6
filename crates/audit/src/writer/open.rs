//! Opens a file, and continues the chain that it ends with.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::chain::Chain;
use crate::error::AuditError;
use crate::file::FileLayer;
use crate::line::Torn;
use crate::settings::AuditSettings;
use crate::shared::Shared;
use crate::writer::names::{folder_of, new_file_name, rotated_files};
use crate::writer::rate::Rate;
use crate::writer::room::Settled;
use crate::writer::tail::{Tail, first_line, tail, tail_of};
use crate::writer::{Trouble, Writer};

impl Writer {
    /// Opens the file, reports what is torn, and writes `start`.
    pub(crate) fn open(
        disk: Box<dyn FileLayer>,
        settings: AuditSettings,
        shared: Arc<Shared>,
    ) -> Result<Self, AuditError> {
        let path = settings.file.clone();
        let io = |error| AuditError::Io {
            file: path.clone(),
            error,
        };
        let mut file = disk.open(&path).map_err(io)?;
        if !file.try_lock().map_err(io)? {
            return Err(AuditError::Locked(path));
        }
        // A rotation that broke off has left it; nothing was written to it.
        let new = new_file_name(&path);
        if disk.list(&folder_of(&path)).map_err(io)?.contains(&new) {
            disk.remove(&new).map_err(io)?;
        }
        let written = file.size().map_err(io)?;
        let (tail, first) = if written > 0 {
            let tail = tail(&mut *file, written).map_err(io)?;
            let tail = tail.ok_or_else(|| AuditError::NotALog(path.clone()))?;
            let first = first_line(&mut *file).map_err(io)?;
            (Some(tail), first)
        } else {
            (last_rotated(&*disk, &path).map_err(io)?, None)
        };
        let is_new = written == 0;
        let chain = match &tail {
            Some(tail) => tail.chain.clone(),
            None => Chain::new(stream_id()?),
        };
        let (first_seq, day) = first.unwrap_or_default();
        let mut writer = Self {
            disk,
            settings,
            shared,
            file,
            chain,
            first_seq,
            day,
            written,
            allocated: written,
            control: 0,
            unwritten: Vec::new(),
            needs_sync: false,
            since_checkpoint: 0,
            checkpoint_due: None,
            new_head: None,
            rotate_after: Duration::ZERO,
            rate: Rate::default(),
            is_filling: false,
            settled: Settled::default(),
        };
        let torn = tail.and_then(|tail| tail.torn).filter(|_| !is_new);
        writer.begin(torn)?;
        Ok(writer)
    }

    /// Writes the first lines of this broker.
    fn begin(&mut self, torn: Option<(Torn, bool)>) -> Result<(), AuditError> {
        let mut has_room = true;
        if let Some((torn, has_line_feed)) = torn {
            if !has_line_feed {
                self.unwritten.push(b'\n');
            }
            has_room &= self.add_torn(torn);
        }
        has_room &= self.add_start("opened") && self.fill_room();
        if !has_room {
            return Err(AuditError::Io {
                file: self.settings.file.clone(),
                error: std::io::ErrorKind::StorageFull.into(),
            });
        }
        self.flush().map_err(|error| AuditError::Io {
            file: self.settings.file.clone(),
            error,
        })?;
        self.publish(None::<Trouble>, std::collections::VecDeque::new(), true);
        Ok(())
    }
}

/// Reads the end of the newest older file.
fn last_rotated(disk: &dyn FileLayer, path: &Path) -> std::io::Result<Option<Tail>> {
    let Some((_, newest)) = rotated_files(disk, path)?.pop() else {
        return Ok(None);
    };
    tail_of(disk, &newest)
}

/// Returns a random id (UUID, version 4).
fn stream_id() -> Result<String, AuditError> {
    use ring::rand::{SecureRandom as _, SystemRandom};

    let mut bytes = [0_u8; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| crate::key::KeyError::Random)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = data_encoding::HEXLOWER.encode(&bytes);
    Ok([
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ]
    .join("-"))
}
