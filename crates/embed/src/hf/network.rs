//! The networks that are computed here: BERT, XLM-RoBERTa, and the tables of model2vec.

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{bert, xlm_roberta};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;
use serde::Deserialize;

use super::folder::{Files, settings};

/// The numbers of a config are refused above these: with them no model of sentences is known.
const MAX_WIDTH: usize = 8192;
const MAX_LAYERS: usize = 64;
const MAX_VOCABULARY: usize = 2_000_000;
const MAX_POSITIONS: usize = 65_536;
/// Maximum number of parts of a text.
const MAX_PARTS: usize = 512;

/// The way to make one vector from the vectors of a text's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pooling {
    Mean,
    First,
    Max,
}

/// A loaded network.
pub(super) enum Network {
    Bert(bert::BertModel),
    XlmRoberta(xlm_roberta::XLMRobertaModel),
    Table(Table),
}

/// A vector for each part of a word.
pub(super) struct Table {
    rows: Vec<f32>,
    /// A factor for each row.
    weights: Option<Vec<f32>>,
    /// The row of each part of a word; without it the number of the part.
    mapping: Option<Vec<u32>>,
    dimensions: usize,
}

#[derive(Deserialize)]
struct Kind {
    model_type: Option<String>,
}

/// The numbers of a config that are bounded.
#[derive(Deserialize)]
struct Sizes {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    type_vocab_size: usize,
}

#[derive(Default, Deserialize)]
struct PoolingSettings {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
}

#[derive(Default, Deserialize)]
struct SentenceSettings {
    max_seq_length: Option<usize>,
}

impl Pooling {
    /// Reads the pooling from `1_Pooling/config.json`; without the file, it is the mean.
    pub(super) fn read(files: &Files) -> Result<Self, String> {
        let name = "1_Pooling/config.json";
        let Some(modes) = settings::<PoolingSettings>(name, files.pooling.as_deref())? else {
            return Ok(Self::Mean);
        };
        match (
            modes.pooling_mode_mean_tokens,
            modes.pooling_mode_cls_token,
            modes.pooling_mode_max_tokens,
        ) {
            (true, false, false) => Ok(Self::Mean),
            (false, true, false) => Ok(Self::First),
            (false, false, true) => Ok(Self::Max),
            _ => Err(format!("`{name}` has another mode than mean, cls or max")),
        }
    }

    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::First => "cls",
            Self::Max => "max",
        }
    }

    /// Returns the vector of a text, of the vectors of its parts: a matrix with a row for each.
    fn apply(self, parts: &Tensor) -> candle_core::Result<Vec<f32>> {
        let pooled = match self {
            Self::Mean => parts.mean(0)?,
            Self::First => parts.get(0)?,
            Self::Max => parts.max(0)?,
        };
        pooled.to_dtype(DType::F32)?.to_vec1()
    }
}

impl Network {
    /// Loads the network that `config.json` describes, and the maximum number of parts of a text.
    pub(super) fn load(files: &mut Files) -> Result<(Self, usize), String> {
        let kind: Option<Kind> = settings("config.json", Some(&files.config))?;
        let kind = kind.and_then(|kind| kind.model_type).unwrap_or_default();
        let tensors = std::mem::take(&mut files.tensors);
        match kind.as_str() {
            "model2vec" => Ok((Self::Table(Table::load(&tensors)?), MAX_PARTS)),
            "bert" | "xlm-roberta" => Self::transformer(files, tensors, &kind),
            other => {
                let other = broker_model::text::shown_line(other, 40);
                Err(format!(
                    "`config.json`: `model_type` is `{other}`, and only `bert`, `xlm-roberta` and `model2vec` are supported"
                ))
            }
        }
    }

    fn transformer(files: &Files, tensors: Vec<u8>, kind: &str) -> Result<(Self, usize), String> {
        let name = "config.json";
        let sizes: Option<Sizes> = settings(name, Some(&files.config))?;
        let sizes = sizes.ok_or("`config.json` is empty")?;
        sizes
            .check()
            .map_err(|reason| format!("`{name}`: {reason}"))?;
        let sentence =
            settings::<SentenceSettings>("sentence_bert_config.json", files.sentence.as_deref())?;
        // XLM-RoBERTa begins to count positions behind the position of padding.
        let reserved = if kind == "bert" { 0 } else { 2 };
        let positions = sizes.max_position_embeddings.saturating_sub(reserved);
        let wanted = sentence
            .and_then(|it| it.max_seq_length)
            .unwrap_or(MAX_PARTS);
        let parts = wanted.min(positions).min(MAX_PARTS);
        if parts < 3 {
            return Err(format!("`{name}`: a text may have only {parts} parts"));
        }
        let of_tensors = |error: candle_core::Error| {
            format!(
                "`model.safetensors`: {}",
                broker_model::text::shown_line(&error.to_string(), 300)
            )
        };
        let builder = VarBuilder::from_buffered_safetensors(tensors, DType::F32, &Device::Cpu)
            .map_err(of_tensors)?;
        let network = if kind == "bert" {
            let config = settings::<bert::Config>(name, Some(&files.config))?;
            let config = config.ok_or("`config.json` is empty")?;
            bert::BertModel::load(builder, &config).map(Self::Bert)
        } else {
            let config = settings::<xlm_roberta::Config>(name, Some(&files.config))?;
            let config = config.ok_or("`config.json` is empty")?;
            let builder = match builder.contains_tensor("roberta.embeddings.word_embeddings.weight")
            {
                true => builder.pp("roberta"),
                false => builder,
            };
            xlm_roberta::XLMRobertaModel::new(&config, builder).map(Self::XlmRoberta)
        };
        Ok((network.map_err(of_tensors)?, parts))
    }

    /// Returns the vector of the parts of a text. The parts are numbers of the vocabulary.
    pub(super) fn embed(&self, parts: &[u32], pooling: Pooling) -> Result<Vec<f32>, String> {
        let computed = match self {
            Self::Table(table) => return table.embed(parts),
            Self::Bert(model) => transform(parts, |ids, types, mask| {
                model.forward(ids, types, Some(mask))
            }),
            Self::XlmRoberta(model) => transform(parts, |ids, types, mask| {
                model.forward(ids, mask, types, None, None, None)
            }),
        };
        let pooled = computed.and_then(|rows| pooling.apply(&rows));
        pooled.map_err(|error| broker_model::text::shown_line(&error.to_string(), 300))
    }
}

/// Runs a transformer on one text; a row for each part.
fn transform(
    parts: &[u32],
    forward: impl FnOnce(&Tensor, &Tensor, &Tensor) -> candle_core::Result<Tensor>,
) -> candle_core::Result<Tensor> {
    let ids = Tensor::new(parts, &Device::Cpu)?.unsqueeze(0)?;
    let (types, mask) = (ids.zeros_like()?, ids.ones_like()?);
    forward(&ids, &types, &mask)?.squeeze(0)
}

impl Sizes {
    fn check(&self) -> Result<(), String> {
        let bounds = [
            ("vocab_size", self.vocab_size, MAX_VOCABULARY),
            ("hidden_size", self.hidden_size, MAX_WIDTH),
            ("num_hidden_layers", self.num_hidden_layers, MAX_LAYERS),
            (
                "num_attention_heads",
                self.num_attention_heads,
                self.hidden_size,
            ),
            ("intermediate_size", self.intermediate_size, 8 * MAX_WIDTH),
            (
                "max_position_embeddings",
                self.max_position_embeddings,
                MAX_POSITIONS,
            ),
            ("type_vocab_size", self.type_vocab_size, MAX_WIDTH),
        ];
        for (name, value, max) in bounds {
            if value == 0 || value > max {
                return Err(format!("`{name}` is {value}, and must be from 1 to {max}"));
            }
        }
        match self.hidden_size % self.num_attention_heads {
            0 => Ok(()),
            _ => Err("`hidden_size` is not a multiple of `num_attention_heads`".to_owned()),
        }
    }
}

impl Table {
    /// Reads `embeddings`, and the tensors `weights` and `mapping` of newer models.
    fn load(bytes: &[u8]) -> Result<Self, String> {
        let wrong = |reason: &str| format!("`model.safetensors`: {reason}");
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| wrong(&error.to_string()))?;
        let rows = tensors
            .tensor("embeddings")
            .map_err(|_| wrong("it has no tensor `embeddings`"))?;
        let &[count, dimensions] = rows.shape() else {
            return Err(wrong("`embeddings` is not a matrix"));
        };
        if !(1..=MAX_WIDTH).contains(&dimensions) || !(1..=MAX_VOCABULARY).contains(&count) {
            return Err(wrong("`embeddings` is too large, or empty"));
        }
        let numbers = |name: &str, dtype, data: &[u8]| {
            floats(dtype, data).ok_or_else(|| wrong(&format!("`{name}` is not F32, F16 or F64")))
        };
        let optional = |name: &str| tensors.tensor(name).ok();
        let weights = optional("weights");
        let weights = weights.map(|it| numbers("weights", it.dtype(), it.data()));
        let mapping = optional("mapping");
        let mapping = mapping.map(|it| {
            integers(it.dtype(), it.data())
                .ok_or_else(|| wrong("`mapping` is not I32 or I64, or has a negative number"))
        });
        let table = Self {
            rows: numbers("embeddings", rows.dtype(), rows.data())?,
            weights: weights.transpose()?,
            mapping: mapping.transpose()?,
            dimensions,
        };
        let mapped = table.mapping.iter().flatten();
        match mapped.copied().all(|row| (row as usize) < count) {
            true => Ok(table),
            false => Err(wrong(
                "`mapping` names a row that `embeddings` does not have",
            )),
        }
    }

    /// Computes the mean of the rows of the parts.
    fn embed(&self, parts: &[u32]) -> Result<Vec<f32>, String> {
        let mut sum = vec![0f32; self.dimensions];
        for part in parts {
            let at = *part as usize;
            let row = self
                .mapping
                .as_ref()
                .map_or(Some(at), |mapping| mapping.get(at).map(|row| *row as usize));
            let row = row.and_then(|row| self.rows.chunks_exact(self.dimensions).nth(row));
            let row = row.ok_or("a part of a word has no row in `embeddings`")?;
            let weight = match &self.weights {
                Some(weights) => *weights.get(at).ok_or("a part of a word has no weight")?,
                None => 1.0,
            };
            for (sum, component) in sum.iter_mut().zip(row) {
                *sum += component * weight;
            }
        }
        Ok(sum)
    }
}

/// Returns the numbers of a tensor of floats.
fn floats(dtype: Dtype, data: &[u8]) -> Option<Vec<f32>> {
    Some(match dtype {
        Dtype::F32 => {
            let (chunks, _) = data.as_chunks::<4>();
            chunks
                .iter()
                .map(|bytes| f32::from_le_bytes(*bytes))
                .collect()
        }
        Dtype::F64 => {
            let (chunks, _) = data.as_chunks::<8>();
            chunks
                .iter()
                .map(|bytes| f64::from_le_bytes(*bytes) as f32)
                .collect()
        }
        Dtype::F16 => {
            let count = data.len() / 2;
            let half = Tensor::from_raw_buffer(data, DType::F16, &[count], &Device::Cpu).ok()?;
            half.to_dtype(DType::F32).ok()?.to_vec1().ok()?
        }
        _ => return None,
    })
}

/// Returns the numbers of a tensor of non-negative integers.
fn integers(dtype: Dtype, data: &[u8]) -> Option<Vec<u32>> {
    match dtype {
        Dtype::I32 => {
            let (chunks, _) = data.as_chunks::<4>();
            let numbers = chunks.iter().map(|bytes| i32::from_le_bytes(*bytes));
            numbers.map(|number| u32::try_from(number).ok()).collect()
        }
        Dtype::I64 => {
            let (chunks, _) = data.as_chunks::<8>();
            let numbers = chunks.iter().map(|bytes| i64::from_le_bytes(*bytes));
            numbers.map(|number| u32::try_from(number).ok()).collect()
        }
        _ => None,
    }
}
