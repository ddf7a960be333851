package peers;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtensionContext;

/** Skips what excluded.txt names, a class or one of its methods, and says why. */
public class Excluded implements ExecutionCondition {
    private static final Map<String, String> REASONS = reasons(Path.of(System.getProperty("excluded")));

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
        // One by one, since a class that is skipped as a whole is in no report.
        if (context.getTestMethod().isEmpty()) {
            return ConditionEvaluationResult.enabled(null);
        }
        String name = context.getRequiredTestClass().getSimpleName();
        String test = name + "." + context.getRequiredTestMethod().getName();
        String reason = REASONS.getOrDefault(test, REASONS.get(name));
        return reason == null ? ConditionEvaluationResult.enabled(null) : ConditionEvaluationResult.disabled(reason);
    }

    private static Map<String, String> reasons(Path path) {
        try {
            return Files.readAllLines(path).stream()
                    .filter(line -> !line.isEmpty() && !line.startsWith("#"))
                    .map(line -> line.split(" ", 2))
                    .collect(Collectors.toMap(parts -> parts[0], parts -> parts[1]));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
