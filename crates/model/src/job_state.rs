//! The states of a job: a call that outlives its caller.

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// It waits for its turn.
    Queued,
    /// Its call runs.
    Running,
    /// Its server asks its owner a question.
    InputRequired,
    /// It has a result. The result may say that the tool failed.
    Succeeded,
    /// It has an error.
    Failed,
    /// Its owner cancelled it.
    Canceled,
    /// The broker ended after the call was sent, so that its outcome is not known.
    Lost,
}

impl JobState {
    /// Every state, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::InputRequired,
        Self::Succeeded,
        Self::Failed,
        Self::Canceled,
        Self::Lost,
    ];

    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::InputRequired => "input_required",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::Lost => "lost",
        }
    }

    /// Reads the name of a state.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether a broker executes the job.
    pub const fn is_claimed(self) -> bool {
        match self {
            Self::Running | Self::InputRequired => true,
            Self::Queued | Self::Succeeded | Self::Failed | Self::Canceled | Self::Lost => false,
        }
    }

    /// Whether a job in this state never changes again.
    pub const fn is_finished(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::InputRequired => false,
            Self::Succeeded | Self::Failed | Self::Canceled | Self::Lost => true,
        }
    }
}
