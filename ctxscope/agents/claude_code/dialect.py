"""What is known of Claude Code's transcripts: kinds of lines, their fields, versions (claude_code.md §3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping

VERSIONS = ("1.0.98", "1.0.103", "2.0.30", "2.1.5", "2.1.12", "2.1.37", "2.1.112", "2.1.220", "2.1.332")
"""Versions whose logs were read, oldest first."""

COMMON: Collection[str] = frozenset(
    {
        *(
            "type",
            "uuid",
            "parentUuid",
            "logicalParentUuid",
            "isSidechain",
            "agentId",
            "sessionId",
            "session_id",
            "cwd",
        ),
        *("requestSessionId", "gitBranch", "version", "userType", "entrypoint", "timestamp", "slug", "promptId"),
        *("promptSource", "turnOrigin", "turnPosition", "isMeta", "isVisibleInTranscriptOnly", "rowSource", "teamName"),
        *("sessionKind", "forkedFrom", "sentAtMs", "isReplay", "isVirtual"),
    }
)
_MESSAGE = frozenset(
    {
        *("message", "toolUseResult", "isCompactSummary", "permissionMode", "sourceToolAssistantUUID", "planContent"),
        *("permissionDecision", "isApiErrorMessage", "thinkingMetadata", "todos", "origin", "imagePasteIds", "error"),
        *("sourceToolUseID", "mcpMeta", "summarizeMetadata", "parent_tool_use_id", "toolUseID", "interruptedMessageId"),
        *("toolDenialKind", "promptSuggestion", "madeBy", "attributionAgent", "attributionSkill", "attributionPlugin"),
        *("sandboxed", "turnCompanion", "ownNote", "toolEndsTurn", "classifierMetaLines", "interruptedByShutdown"),
        *("summarizedTurnPromptUuids", "hookText", "hookTextLead", "queueSkipAttachments"),
    }
)
_ANSWER = frozenset(
    {
        *(
            "requestId",
            "requestRef",
            "apiBlockIndex",
            "requestedModel",
            "promptCacheRequested",
            "effort",
            "advisorModel",
        ),
        *("perTurnEffort", "thinkingDisplay", "thinkingDurationMs", "errorDetails", "isAbortedMidStream", "apiError"),
        *("supersedesUuids", "isInterrupted", "apiErrorStatus", "attributionMcpServer", "attributionMcpTool"),
        *("toolInputStreamMs", "apiErrorParams", "failedResponseHadNoToolCall"),
    }
)
_SYSTEM = frozenset(
    {
        *(
            "subtype",
            "content",
            "level",
            "compactMetadata",
            "microcompactMetadata",
            "error",
            "retryInMs",
            "retryAttempt",
        ),
        *("maxRetries", "cause", "durationMs", "hookCount", "hookInfos", "hookErrors", "preventedContinuation"),
        *("stopReason", "hasOutput", "toolUseID", "messageCount", "hookAdditionalContext", "trigger", "originalModel"),
        *("fallbackModel", "apiRefusalCategory", "apiRefusalExplanation", "refusedUserMessageUuid", "requestId"),
        *("retractedMessageUuids", "source", "direction", "scope", "pendingBackgroundAgentCount", "commands", "url"),
        *("pendingWorkflowCount", "budgetTokens", "budgetLimit", "budgetNudges", "parentToolUseID", "category"),
        *("failedHookErrorIndexes", "commandRun", "modelRestriction"),
    }
)
_REQUEST = frozenset(
    {
        *(
            "id",
            "querySource",
            "shapeHash",
            "params",
            "thread",
            "base",
            "keep",
            "tail",
            "cacheControl",
            "requestDigest",
        ),
        *("echoWireToolInputs", "cut", "cutRequestDigest", "withheld", "account"),
    }
)
_SIDE: Mapping[str, Collection[str]] = {
    "queue-operation": ("operation", "content", "origin", "priority", "reason", "commandUuid", "deliveryId"),
    "last-prompt": ("lastPrompt", "leafUuid"),
    "mode": ("mode",),
    "permission-mode": ("permissionMode",),
    "summary": ("summary", "leafUuid"),
    "custom-title": ("customTitle", "title", "source"),
    "ai-title": ("aiTitle", "title"),
    "agent-name": ("agentName", "name"),
    "agent-color": ("agentColor",),
    "agent-setting": ("agentSetting",),
    "tag": ("tag",),
    "pr-link": ("prNumber", "prUrl", "prRepository"),
    "worktree-state": ("worktreeSession",),
    "relocated": ("relocatedCwd", "from", "to"),
    "tools-used": ("tools",),
    "cost-state": (
        *("totalCostUSD", "totalAPIDuration", "totalAPIDurationWithoutRetries", "totalToolDuration", "totalLinesAdded"),
        *("totalLinesRemoved", "totalDuration", "startTime", "modelUsage", "hasUnknownModelCost"),
    ),
    "atis-latch": ("atis",),
    "file-history-snapshot": ("messageId", "snapshot", "isSnapshotUpdate"),
    "file-history-delta": ("messageId", "delta", "snapshot", "trackingPath", "backup"),
    "attribution-snapshot": ("messageId", "snapshot"),
    "content-replacement": ("replacements",),
    "api-request-shape": ("shapeHash", "shape"),
    "api-request-blob": ("hash", "message"),
    "api-request-resumed": ("id", "base"),
    "frame-link": ("path", "frameUrl", "title"),
    "started": ("key",),
    "result": ("key", "result"),
    "bridge-session": ("bridgeSessionId", "lastSequenceNum", "ownerAccountUuid", "ownerOrganizationUuid"),
}
_NAMED_ONLY = (
    *("fork-context-ref", "continued-in", "derived-from", "ended-by-model", "history-suppression"),
    *("isolation-latch", "session-owner", "memory-mode", "observer-ref", "resume-head-vouch"),
    *("data-flow-records", "marble-origami-commit", "marble-origami-snapshot", "speculation-accept"),
)
"""Kinds whose name alone is known; nothing of them is sent."""

KINDS: Mapping[str, Collection[str]] = {
    "user": _MESSAGE,
    "assistant": _MESSAGE | _ANSWER,
    "system": _SYSTEM,
    "attachment": ("attachment", "rendered", "renderedRole", "renderedBesideToolResult", "renderedInHumanTurn"),
    "progress": ("data", "toolUseID", "parentToolUseID"),
    "api-request": _REQUEST,
    **dict.fromkeys(_NAMED_ONLY, ()),
    **_SIDE,
}
"""Fields of the envelope by kind of line."""
